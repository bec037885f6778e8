import Profiles
import Queue
import Testing
import WaypostCore

@testable import Daemon
@testable import WaypostControl

@Suite struct OperatorOrdersTests {
    private func settings(
        _ url: String = "https://new", device: String = "d", _ rule: EndpointSettings.OnCollision = .keep
    ) -> EndpointSettings {
        EndpointSettings(name: "main", baseURL: url, device: device, onCollision: rule)
    }

    private func orders(
        _ line: String, _ settings: [EndpointSettings], state: EndpointState = .active, waiting: Int = 3,
        boundTo: String? = nil
    ) throws(ControlError) -> OperatorOrders {
        let depths = settings.map { settings in
            var depth = EndpointDepth(
                endpoint: settings.name, state: state, waiting: waiting, inFlight: 0, ackedThrough: 0, oldestSeq: nil,
                oldestTime: nil)
            depth.boundTo = boundTo
            return depth
        }
        return try OperatorOrders(RequestFrame(Array(line.utf8)), endpoints: settings, depths: depths)
    }

    private let bind = #"{"do":"endpoint","action":"bind","endpoint":"main"}"#
    private let force = #"{"do":"endpoint","action":"bind","endpoint":"main","force":true}"#

    @Test func rowsOfTheSameAssetGoToANewAddressUnasked() throws {
        let found = try orders(bind, [settings()], state: .rebind, boundTo: "https://old\nd")
        #expect(found.queue == [.bind(endpoint: "main")] && found.rebinds == "main" && found.needsOwner)
    }

    @Test func rowsOfAnotherDeviceAreBoundByForceOnly() throws {
        let old = "https://new\nother"
        let refused = #expect(throws: ControlError.self) {
            try orders(bind, [settings()], state: .rebind, boundTo: old)
        }
        #expect(refused?.code == "unreported-data" && refused?.message.hasPrefix("3 locations") == true)
        #expect(refused?.hint?.contains("sudo waypost endpoint bind main --force") == true)
        #expect(try orders(force, [settings()], state: .rebind, boundTo: old).queue == [.bind(endpoint: "main")])
        #expect(
            try orders(force, [settings("https://new", device: "d", .clear)], state: .rebind, boundTo: old).queue
                == [.clear(endpoint: "main"), .bind(endpoint: "main")])
        #expect(
            try orders(force, [settings("https://new", device: "d", .quarantine)], state: .rebind, boundTo: old).queue
                == [.quarantine(endpoint: "main", Refusal(reason: "rebound")), .bind(endpoint: "main")])
        // Where none of its rows wait any more, there is nothing to lose.
        #expect(
            try orders(bind, [settings()], state: .rebind, waiting: 0, boundTo: old).queue
                == [.bind(endpoint: "main")])
    }

    @Test func anAssetThatWasTakenIsTakenBack() throws {
        #expect(try orders(bind, [settings()], state: .taken).queue == [.bind(endpoint: "main")])
        #expect(try orders(bind, [settings()], state: .paused(reason: "not bound")).queue == [.bind(endpoint: "main")])
        #expect(throws: ControlError.self) { try orders(bind, [settings()]) }
    }

    @Test func onlyPausesAndStopsAreResumed() throws {
        let resume = #"{"do":"endpoint","action":"resume"}"#
        for state in [EndpointState.active, .paused(reason: "auth"), .stopped(reason: "gone")] {
            let found = try orders(resume, [settings()], state: state)
            #expect(found.resumes == "main" && found.queue.isEmpty && !found.needsOwner)
        }
        for state in [EndpointState.taken, .rebind] {
            #expect(throws: ControlError.self) { try orders(resume, [settings()], state: state) }
        }
    }

    @Test func onlyRowsOfAnOldBindingAreDropped() throws {
        let drop = #"{"do":"endpoint","action":"drop","endpoint":"main"}"#
        let found = try orders(drop, [settings()], state: .rebind)
        #expect(found.queue == [.drop(endpoint: "main")] && found.needsOwner && found.rebinds == "main")
        #expect(throws: ControlError.self) { try orders(drop, [settings()], state: .paused(reason: "auth")) }
    }

    @Test func rowsOfTheQuarantineAreNamedOrAllMeant() throws {
        let some = try orders(#"{"do":"quarantine","action":"retry","ids":[4,5]}"#, [settings()])
        #expect(some.queue == [.retryQuarantined(endpoint: nil, ids: [4, 5])] && !some.needsOwner)
        let all = try orders(#"{"do":"quarantine","action":"drop","endpoint":"main","all":true}"#, [settings()])
        #expect(all.queue == [.dropQuarantined(endpoint: "main", ids: [])] && all.needsOwner)
        for line in [
            #"{"do":"quarantine","action":"drop"}"#, #"{"do":"quarantine","action":"drop","ids":[]}"#,
            #"{"do":"quarantine","action":"drop","ids":[1],"all":true}"#,
            #"{"do":"quarantine","action":"burn","all":true}"#, #"{"do":"quarantine"}"#,
        ] {
            #expect(throws: ControlError.self, "\(line)") { try orders(line, [settings()]) }
        }
    }

    @Test func anEndpointIsNamedWhereThereAreSeveral() {
        var other = settings()
        other.name = "other"
        let line = #"{"do":"endpoint","action":"resume"}"#
        let missing = #expect(throws: ControlError.self) { try orders(line, [settings(), other]) }
        #expect(missing?.hint == "known: main, other")
        let unknown = #expect(throws: ControlError.self) {
            try orders(#"{"do":"endpoint","action":"resume","endpoint":"mian"}"#, [settings(), other])
        }
        #expect(unknown?.code == "unknown-endpoint")
    }

    @Test func anOrderForASpareNamesTheOneThatItStandsInFor() throws {
        var spare = settings()
        spare.name = "spare"
        spare.backupFor = "main"
        let refused = #expect(throws: ControlError.self) {
            try orders(#"{"do":"endpoint","action":"resume","endpoint":"spare"}"#, [settings(), spare])
        }
        #expect(refused?.hint == "it stands in for \"main\": name that one")
        // Beside a spare there is one endpoint that can be meant.
        #expect(try orders(#"{"do":"endpoint","action":"resume"}"#, [settings(), spare]).resumes == "main")
    }

    @Test func onlyAnEndpointThatIsNoLongerConfiguredIsForgotten() throws {
        let found = try orders(#"{"do":"endpoint","action":"forget","endpoint":"old"}"#, [settings()])
        #expect(found.queue == [.forget(endpoint: "old")] && found.needsOwner && found.rebinds == nil)
        for line in [
            #"{"do":"endpoint","action":"forget","endpoint":"main"}"#, #"{"do":"endpoint","action":"forget"}"#,
        ] {
            #expect(throws: ControlError.self, "\(line)") { try orders(line, [settings()]) }
        }
    }

    @Test func whatTheQueueRefusedIsAnError() throws {
        let refused = #expect(throws: ControlError.self) {
            try OperatorOrders.reply([.done(rows: 3, first: 1, last: 3), .refused("no room")])
        }
        #expect(refused?.message == "no room")
        let reply = try OperatorOrders.reply([
            .done(rows: 3, first: 4, last: 6), .done(rows: 1, first: 2, last: 2),
        ])
        #expect(reply.rows == 4 && reply.firstSeq == 2 && reply.lastSeq == 6)
    }
}
