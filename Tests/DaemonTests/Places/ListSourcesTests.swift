import ConfigurationTestSupport
import Foundation
import Logging
import Network
import Places
import Synchronization
import TestSupport
import Testing
import WaypostCore
import WaypostHost
import WaypostTracking

@testable import Configuration
@testable import Daemon

/// Lists of fences and of beacon regions from a server on loopback, over libcurl.
@Suite(.waiting) struct ListSourcesTests {
    /// What the server answers next, by turns; the last answer stays.
    private final class Script: Sendable {
        private let answers = Mutex<[@Sendable (ScriptedServer.Request) -> String]>([])

        func set(_ list: (@Sendable (ScriptedServer.Request) -> String)...) { answers.withLock { $0 = list } }
        func set(_ list: String...) { answers.withLock { $0 = list.map { text in { _ in text } } } }

        func next(_ request: ScriptedServer.Request) -> String {
            let answer = answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
            return answer(request)
        }
    }

    /// A process: what it knows is lost with it, what is on disk is not.
    private final class Bench<Source: ListSource> {
        let loop: EventLoop
        let uplink: LoopedUplink
        let sources: ListSources<Source>
        private let log = LogLines()
        private(set) var joined: [[String]] = []

        init(_ configs: [Source], own: [Source.Item] = [], on host: ShiftedHost? = nil, in directory: String) throws {
            let loop = if let host { EventLoop(on: host) } else { EventLoop(on: try LinuxHost()) }
            let uplink = try LoopedUplink(settings: .init(version: "1"), loop: loop)
            let log = AgentLog(logger: Logger(label: "") { [log] _ in log }, positions: false)
            (self.loop, self.uplink) = (loop, uplink)
            sources = ListSources(
                configs, own: own, directory: directory, uplink: uplink, log: log, loop: loop,
                makeCredentials: {
                    EndpointCredentials($0, stateDirectory: directory, uplink: uplink, log: log, loop: loop)
                })
            sources.itemsChanged = { [unowned self] items, _ in joined.append(items.map(\.id)) }
        }

        deinit {
            sources.close()
            uplink.close()
        }

        /// What was logged, without the fields.
        var lines: [String] { log.text.map { $0.components(separatedBy: " [\"")[0] } }
        var ids: [String] { sources.joined.map(\.id) }
        var list: FetchedList<Source.Item> { sources.fetched[0] }

        /// Asks the server, and waits for what becomes of it.
        @discardableResult
        func refresh() throws -> FetchEnding? {
            var ending: FetchEnding?
            list.refresh(at: loop.now) { ending = $0 }
            try loop.run { ending != nil }
            return ending
        }
    }

    private let directory: TemporaryDirectory
    private let script = Script()
    private let server: ScriptedServer

    init() throws {
        directory = try TemporaryDirectory()
        server = try ScriptedServer { [script] connection in
            while let request = connection.request() {
                let answer = script.next(request)
                connection.send(answer)
                if !answer.contains("Content-Length") { return }
            }
        }
    }

    private func configs(_ more: String = "", name: String = "venue") throws -> [FenceSourceConfig] {
        let text = """
            [[geofences.source]]
            name = "\(name)"
            profile = "accesso-venue"
            url = "\(server.url)/venues/42"

            """
        return try loaded(smallest + upload + text + more).config.fenceSources
    }

    private func regions(name: String = "venue") throws -> [BeaconSourceConfig] {
        let text = """
            [beacons]
            enabled = true
            [[beacons.source]]
            name = "\(name)"
            profile = "accesso-beacons"
            url = "\(server.url)/rest/venue/${vars.venue_id}/beacon/regions"
            vars = { venue_id = "42" }
            auth = { kind = "bearer", token = "file:\(directory.path)/token" }

            """
        try directory.write("token", "t-1\n")
        return try loaded(smallest + upload + text).config.beaconSources
    }

    private static func body(_ ids: [String], radius: Int = 50) -> String {
        let fences = ids.map { #"{"id":"\#($0)","radius":\#(radius),"center":{"lat":52,"lon":13}}"# }
        return #"{"geofences":[\#(fences.joined(separator: ","))]}"#
    }

    private static func answer(
        _ body: String, status: String = "200 OK", tag: String? = nil, more: String = "", length: Int? = nil
    ) -> String {
        let tag = tag.map { "ETag: \($0)\r\n" } ?? ""
        return "HTTP/1.1 \(status)\r\n\(tag)\(more)Content-Length: \(length ?? body.utf8.count)\r\n\r\n\(body)"
    }

    private var kept: String { "\(directory.path)/geofences.venue.list" }

    private func attribute(_ key: FileAttributeKey) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: kept)[key] as? Int
    }

    @Test func aListIsInForceKeptAndConfirmed() throws {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        let list = Self.answer(Self.body(["a", "b"]), tag: "\"1\"", more: "Last-Modified: \(date)\r\n")
        script.set(list, Self.answer("", status: "304 Not Modified"))
        let bench = try Bench(configs(), in: directory.path)
        #expect(bench.ids.isEmpty && bench.list.age(at: bench.loop.now) == nil)
        #expect(try bench.refresh() == .taken)
        #expect(bench.joined == [["venue/a", "venue/b"]] && bench.list.problem == nil)
        #expect(try attribute(.posixPermissions) == 0o600)
        let first = try #require(server.requests.first)
        #expect(first.head[0] == "GET /venues/42 HTTP/1.1" && first.header("Accept") == "application/json")
        #expect(first.header("If-None-Match") == nil && first.body.isEmpty)

        #expect(try bench.refresh() == .unchanged && bench.joined.count == 1)
        let conditions = ["If-None-Match", "If-Modified-Since"].map { server.requests.last?.header($0) }
        #expect(conditions == ["\"1\"", date])
        #expect(try #require(bench.list.age(at: bench.loop.now)) < 60)
        #expect(try #require(bench.list.schedule.nextDeadline).seconds(since: bench.loop.now) > 5 * 3600)
    }

    @Test func aStartWithoutTheServerHasTheLastList() throws {
        script.set(Self.answer(Self.body(["a"]), tag: "\"1\""))
        try Bench(configs(), in: directory.path).refresh()
        script.set("")
        let next = try Bench(configs(), in: directory.path)
        #expect(next.ids == ["venue/a"])
        guard case .failed = try next.refresh() else { return #expect(Bool(false)) }
        #expect(next.ids == ["venue/a"] && next.joined.isEmpty && next.list.problem != nil)
        // It knows what it has, and asks for news only.
        #expect(server.requests.last?.header("If-None-Match") == "\"1\"")
        // Another address has another list.
        var other = try configs()
        other[0].list.url += "7"
        #expect(try Bench(other, in: directory.path).ids.isEmpty)
    }

    @Test func whatIsKeptAndDamagedIsAsNone() throws {
        script.set(Self.answer(Self.body(["a"]), tag: "\"1\""))
        try Bench(configs(), in: directory.path).refresh()
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: kept)))
        bytes[bytes.count - 5] ^= 1
        try Data(bytes).write(to: URL(fileURLWithPath: kept))
        let next = try Bench(configs(), in: directory.path)
        #expect(next.ids.isEmpty)
        #expect(next.lines == ["geofences venue: the list that was kept cannot be used: it is damaged"])
        #expect(try next.refresh() == .taken)
        #expect(server.requests.last?.header("If-None-Match") == nil && next.ids == ["venue/a"])
    }

    /// What other answers mean is the matter of `FetchAnswerTests` and `FenceListTests`.
    @Test func whatIsNotAWholeGoodListChangesNothing() throws {
        script.set(Self.answer(Self.body(["a"])))
        let bench = try Bench(configs(), in: directory.path)
        try bench.refresh()
        let before = try Data(contentsOf: URL(fileURLWithPath: kept))
        let half = Self.answer(Self.body(["b", "c"]), length: 5000)
        let comma = #"{"geofences":[{"id":"b","radius":50,"center":{"lat":52,"lon":13}},]}"#
        let rows: [(answer: String, problem: String)] = [
            // The list has no tag yet, so nobody has asked on a condition.
            (Self.answer("", status: "304 Not Modified"), "the server answered with status 304"),
            (Self.answer("no", status: "500 Oops"), "the server answered with status 500"),
            (
                half.replacing("Content-Length", with: "content-length"),
                "127.0.0.1:\(server.port): the answer ended before the end of its body (status 200)"
            ),
            (Self.answer(comma), "the list was refused: found no valid JSON at byte 66, expected JSON"),
            (
                Self.answer(Self.body(["b"], radius: 0)),
                "the list was refused: geofences[0].radius: found a radius of 0.0 m, expected a radius from 10 m to 1000 km"
            ),
            (
                Self.answer("", status: "301 Moved", more: "Location: http://127.0.0.1:9/\r\n"),
                "the server answered with status 301"
            ), (Self.answer("", status: "401 Unauthorized"), "the server answered with status 401"),
            (Self.answer(String(repeating: " ", count: (4 << 20) + 1)), "the answer has more than 4 MiB"),
        ]
        for (number, row) in rows.enumerated() {
            let said = bench.lines.count
            script.set(row.answer)
            #expect(try bench.refresh() == .failed(row.problem))
            #expect(bench.ids == ["venue/a"] && bench.joined.count == 1, "\(row.problem)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: kept)) == before, "\(row.problem)")
            #expect(bench.list.schedule.failures == 1 && bench.list.problem == row.problem)
            let line = try #require(bench.lines.last)
            let words = "geofences venue: \(row.problem); the list of before stays in force, next attempt in "
            #expect(line.hasPrefix(words), "\(line)")
            // Repeated without another line, and over with the first good answer.
            try bench.refresh()
            #expect(bench.lines.count == said + 1, "\(row.problem)")
            script.set(Self.answer(Self.body(["a"]), tag: "\"\(number)\""))
            #expect(try bench.refresh() == .unchanged)
            #expect(bench.list.problem == nil && bench.list.schedule.failures == 0)
        }
        script.set(Self.answer(Self.body(["a", "b"])))
        #expect(try bench.refresh() == .taken)
    }

    @Test func aServerThatIsSlowHoldsNothingUp() throws {
        let slow = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            connection.waitForEnd()
        }
        var config = try configs()
        config[0].list.url = slow.url
        let bench = try Bench(config, in: directory.path)
        var ticks = 0
        var ending: FetchEnding?
        bench.list.refresh(at: bench.loop.now) { ending = $0 }
        try bench.loop.run {
            ticks += 1
            return ticks > 50 && slow.requests.count == 1
        }
        #expect(ending == nil && bench.list.schedule.isFetching && bench.list.schedule.nextDeadline == nil)
    }

    @Test func aListWhoseReadingDidNotEndIsFetchedLater() throws {
        let mark = kept + ".reading"
        // A process that ends has no time to do anything about its files.
        script.set(Self.answer(Self.body(["a"]) + String(repeating: " ", count: 70_000)))
        let first = try Bench(configs(), in: directory.path)
        first.list.check = { _ in
            try? FileManager.default.copyItem(atPath: mark, toPath: mark + "-then")
            return nil
        }
        #expect(try first.refresh() == .taken)
        #expect(!FileManager.default.fileExists(atPath: mark))
        try FileManager.default.moveItem(atPath: mark + "-then", toPath: mark)

        let next = try Bench(configs(), in: directory.path)
        let now = next.loop.now
        next.sources.start(sinceBoot: false, at: now)
        #expect(next.ids == ["venue/a"] && next.list.schedule.nextDeadline == now + .seconds(900))
        #expect(next.list.problem == "waypost ended while it read this list")
        #expect(next.lines.last?.hasSuffix("stays in force, next attempt in 15 min") == true, "\(next.lines)")
        #expect(try next.refresh() == .unchanged && next.list.problem == nil)
        #expect(!FileManager.default.fileExists(atPath: mark))
    }

    /// Each takes as much memory as all the rest of the daemon.
    @Test func longListsComeOneAfterTheOther() throws {
        let padding = String(repeating: " ", count: 300_000)
        script.set(Self.answer(Self.body(["a"]) + padding))
        let bench = try Bench(configs() + configs(name: "other"), in: directory.path)
        bench.sources.start(sinceBoot: false, at: bench.loop.now)
        try bench.loop.run { bench.ids.count == 2 }
        // Only the answer tells that a list is long: the next request knows it.
        #expect(server.requests.count == 4)
        try bench.refresh()
        #expect(server.requests.count == 5)
    }

    /// Faster than what counts as a stall, and slow all the same.
    @Test func aSlowLongListGivesItsTurnUp() throws {
        let slow = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n")
            let piece = String(repeating: " ", count: 2000)
            for _ in 0..<140 { connection.send(piece) }
            for _ in 0..<1800 {
                connection.send(piece)
                usleep(2000)
            }
        }
        script.set(Self.answer(Self.body(["a"]) + String(repeating: " ", count: 300_000)))
        var configs = try configs() + configs(name: "other")
        configs[0].list.url = slow.url
        let host = try ShiftedHost()
        let bench = try Bench(configs, on: host, in: directory.path)
        bench.list.refresh(at: bench.loop.now)
        try bench.loop.run { slow.requests.count == 2 }
        bench.sources.fetched[1].refresh(at: bench.loop.now)
        try bench.loop.run { server.requests.count == 1 }
        for _ in 0..<8 {
            #expect(bench.ids.isEmpty, "it has its minute")
            host.pass(.seconds(7))
            var ticks = 0
            try bench.loop.run {
                ticks += 1
                return ticks > 25
            }
        }
        host.pass(.seconds(5))
        try bench.loop.run { bench.ids == ["other/a"] && slow.requests.count == 3 }
        #expect(bench.list.schedule.isFetching && bench.list.problem == nil)
    }

    @Test func whoHasATurnHearsThatOthersWait() {
        let (turns, owners) = (Turns(places: 2), (0..<4).map { _ in NSObject() })
        var begun: [Int] = []
        func take(_ index: Int, isPutBack: Bool = false, givesWay: Bool = true) {
            let awaited = {
                guard givesWay, turns.isAwaited else { return }
                turns.leave(owners[index])
                take(index, isPutBack: true, givesWay: false)
            }
            turns.take(owners[index], isPutBack: isPutBack, awaited: awaited) { begun.append(index) }
        }
        take(0, givesWay: false)
        take(1)
        take(2)
        #expect(begun == [0, 1, 2], "the second gave its turn up")
        take(3, givesWay: false)
        #expect(begun == [0, 1, 2, 1], "those that wait already come first")
        turns.leave(owners[0])
        #expect(begun == [0, 1, 2, 1, 3])
    }

    @Test func onlyAFewShortListsAreReceivedAtATime() throws {
        let stalling = try ScriptedServer { connection in
            _ = connection.request()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n ")
            connection.waitForEnd()
        }
        var configs: [FenceSourceConfig] = []
        for index in 0..<12 { configs += try self.configs(name: "s\(index)") }
        for index in configs.indices { configs[index].list.url = stalling.url }
        let bench = try Bench(configs, in: directory.path)
        bench.sources.start(sinceBoot: false, at: bench.loop.now)
        var ticks = 0
        try bench.loop.run {
            ticks += 1
            return ticks > 100 && stalling.requests.count >= 8
        }
        #expect(stalling.requests.count == 8)
    }

    @Test func oneAtATimeHasATurn() {
        let (turns, owners) = (Turns(), (0..<4).map { _ in NSObject() })
        var begun: [Int] = []
        for index in owners.indices { turns.take(owners[index]) { begun.append(index) } }
        turns.take(owners[0]) { begun.append(10) }
        #expect(begun == [0, 10])
        turns.leave(owners[1])
        turns.leave(owners[0])
        #expect(begun == [0, 10, 2])
        turns.leave(owners[2])
        turns.leave(owners[3])
        turns.take(owners[1]) { begun.append(1) }
        #expect(begun == [0, 10, 2, 3, 1])
    }

    @Test func aRefusedTokenIsReadAgain() throws {
        try directory.write("token", "old\n")
        script.set { request in
            request.header("Authorization") == "Bearer new"
                ? Self.answer(Self.body(["a"])) : Self.answer("", status: "401 Unauthorized")
        }
        let bench = try Bench(
            configs("auth = { kind = \"bearer\", token = \"file:\(directory.path)/token\" }"), in: directory.path)
        #expect(try bench.refresh() == .failed("the server answered with status 401"))
        try directory.write("token", "new\n")
        #expect(try bench.refresh() == .taken)
        #expect(server.requests.count == 3)
    }

    @Test func theServerMayAskForAPause() throws {
        script.set(Self.answer("", status: "503 Busy", more: "Retry-After: 7200\r\n"))
        let bench = try Bench(configs(), in: directory.path)
        try bench.refresh()
        let delay = try #require(bench.list.refresh(at: bench.loop.now))
        #expect((7190...7200).contains(delay.inSeconds))
    }

    @Test func theSameAgainIsNotWrittenAgain() throws {
        script.set(Self.answer(Self.body(["a"]), tag: "\"1\""), Self.answer(Self.body(["a"]), tag: "\"2\""))
        let bench = try Bench(configs(), in: directory.path)
        try bench.refresh()
        let before = try attribute(.systemFileNumber)
        #expect(try bench.refresh() == .unchanged)
        #expect(try attribute(.systemFileNumber) == before && bench.joined.count == 1)
        try bench.refresh()
        #expect(server.requests.last?.header("If-None-Match") == "\"2\"")
    }

    @Test func aDiskThatRefusesKeepsNoListFromComingIntoForce() throws {
        script.set(Self.answer(Self.body(["a"])))
        let bench = try Bench(configs(), in: "\(directory.path)/nowhere")
        #expect(try bench.refresh() == .taken)
        #expect(bench.ids == ["venue/a"])
        #expect(bench.lines.contains { $0.contains("the list cannot be kept for the next start") })
    }

    @Test func changesAreCountedInTheLog() throws {
        script.set(Self.answer(Self.body(["a", "b"])), Self.answer(Self.body(["b", "c", "d"], radius: 60)))
        let bench = try Bench(configs(), in: directory.path)
        try bench.refresh()
        try bench.refresh()
        let lines = ["2 geofences: 2 added, 0 gone, 0 changed", "3 geofences: 2 added, 1 gone, 1 changed"]
        #expect(bench.lines == lines.map { "geofences venue: \($0)" })
    }

    @Test func aReloadKeepsWhatIsTheSameAndTakesAwayTheRest() throws {
        script.set(Self.answer(Self.body(["a"])))
        let own = [Geofence(id: "own", shape: .circle(centre: Coordinate(latitudeE7: 0, longitudeE7: 0), radius: 50))]
        let both = try configs() + configs(name: "other")
        let bench = try Bench(both, own: own, in: directory.path)
        bench.sources.start(sinceBoot: false, at: bench.loop.now)
        try bench.loop.run { bench.ids.count == 3 }
        let asked = server.requests.count

        // Another period is the same list.
        var slower = both
        slower[0].list.every = .seconds(86_400)
        #expect(bench.sources.reload(slower, own: [], at: bench.loop.now).map(\.id) == ["venue/a", "other/a"])
        try bench.loop.run {
            bench.sources.fetched.allSatisfy { !$0.schedule.isFetching && $0.schedule.confirmedAt != nil }
        }
        try bench.loop.run { server.requests.count >= asked + 2 }

        #expect(bench.sources.reload([slower[1]], own: own, at: bench.loop.now).map(\.id) == ["own", "other/a"])
        #expect(!FileManager.default.fileExists(atPath: kept))
        // Another venue: the fences of the first are none of it.
        var moved = slower[1]
        moved.list.url += "7"
        #expect(bench.sources.reload([moved], own: own, at: bench.loop.now).map(\.id) == ["own"])
        try bench.loop.run { bench.ids == ["own", "other/a"] }
    }

    @Test func regionsOfBeaconsAreFetchedKeptAndJoined() throws {
        let uuid = "F7826DA6-4FA2-4E98-8024-BC5B71E0893E"
        func list(_ regions: String...) -> String {
            "[\(regions.map { #"{"proximityUUID":"\#($0)}"# }.joined(separator: ","))]"
        }
        script.set(
            Self.answer(list(#"\#(uuid.lowercased())","major":123"#, #"\#(uuid)","major":7"#), tag: "\"1\""),
            Self.answer("", status: "304 Not Modified"), Self.answer(list(#"\#(uuid)""#)),
            Self.answer(list(#"\#(uuid)","major":8"#)))
        let own = [BeaconRegion(uuid: try #require(ProximityUUID(uuid)), major: 123, name: "hall")]
        let bench = try Bench(regions(), own: own, in: directory.path)
        #expect(try bench.refresh() == .taken)
        let joined: [String] = ["\(uuid)/123", "\(uuid)/123", "\(uuid)/7"]
        #expect(bench.joined == [joined] && bench.list.count == 2)
        let names: [String?] = BeaconMonitor(bench.sources.joined).regions.map(\.name)
        #expect(names == ["hall", nil])
        let request = try #require(server.requests.first)
        let head: [String] = [
            "GET /rest/venue/42/beacon/regions HTTP/1.1", "Host: 127.0.0.1:\(server.port)", "Accept: application/json",
            "Authorization: Bearer t-1", "Accept-Encoding: identity",
        ]
        let sent: [String] = request.head.filter { !$0.hasPrefix("User-Agent: ") }
        #expect(sent == head && request.body.isEmpty)

        #expect(try bench.refresh() == .unchanged && server.requests.last?.header("If-None-Match") == "\"1\"")
        let problem = "the list was refused: [0].major: found nothing, expected a whole number from 0 to 65535"
        #expect(try bench.refresh() == .failed(problem) && bench.ids == joined)
        // A process that starts without a server has them.
        #expect(try Bench(regions(), in: directory.path).ids == Array(joined.dropFirst()))
        #expect(try bench.refresh() == .taken && bench.ids == ["\(uuid)/123", "\(uuid)/8"])
        let lines: [String] = bench.lines.filter { $0.contains("added") }
        let changes = ["2 beacon regions: 2 added, 0 gone", "1 beacon region: 1 added, 2 gone"]
        #expect(lines == changes.map { "beacons venue: \($0), 0 changed" })
        let file = "\(directory.path)/beacons.venue.list"
        #expect(FileManager.default.fileExists(atPath: file))
        #expect(bench.sources.reload([], own: own, at: bench.loop.now).count == 1)
        #expect(!FileManager.default.fileExists(atPath: file))
    }

    /// That of a reload waits behind the one that is being written.
    @Test func aListIsNotInForceBeforeItsOwnBytesAreOnDisk() throws {
        let padding = String(repeating: " ", count: 4 << 20)
        script.set(Self.answer(Self.body(["a"]) + padding), Self.answer(Self.body(["b"])))
        let old = try configs()
        let bench = try Bench(old, in: directory.path)
        var atAdoption: [UInt8]?
        bench.sources.itemsChanged = { [kept] _, _ in
            let file = FileManager.default.contents(atPath: kept) ?? Data()
            atAdoption = StoredList(Array(file))?.reply
        }
        bench.list.refresh(at: bench.loop.now)
        try bench.loop.run { access("\(kept).new", F_OK) == 0 || atAdoption != nil }
        var slower = old
        slower[0].list.every = .seconds(86_400)
        _ = bench.sources.reload(slower, own: [], at: bench.loop.now)
        try bench.loop.run { bench.ids == ["venue/b"] }
        #expect(atAdoption == Array(Self.body(["b"]).utf8))
    }

    /// Its list is read only once the loop has gone on.
    private struct HeldSource: ListSource {
        static let isReleased = Mutex(false)

        var list: ListSourceConfig
        var form = 0

        func items(of reply: [UInt8]) throws(ListProblems) -> [Geofence] {
            for _ in 0..<10_000 where !Self.isReleased.withLock({ $0 }) { usleep(1000) }
            guard Self.isReleased.withLock({ $0 }) else { throw ListProblems(lines: ["the loop stands still"]) }
            return []
        }
    }

    @Test func readingAListHoldsNothingUp() throws {
        script.set(Self.answer("[]"))
        let bench = try Bench([HeldSource(list: configs()[0].list)], in: directory.path)
        var ending: FetchEnding?
        bench.list.refresh(at: bench.loop.now) { ending = $0 }
        let release = bench.loop.alarm { _ in HeldSource.isReleased.withLock { $0 = true } }
        try bench.loop.run {
            if server.requests.count == 1, release.deadline == nil {
                release.deadline = bench.loop.now + .milliseconds(50)
            }
            return ending != nil
        }
        #expect(ending == .taken)
    }

    @Test func withoutSourcesThereIsNothing() throws {
        let bench = try Bench([FenceSourceConfig](), in: directory.path)
        bench.sources.start(sinceBoot: false, at: bench.loop.now)
        #expect(bench.sources.fetched.isEmpty && bench.ids.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
    }
}
