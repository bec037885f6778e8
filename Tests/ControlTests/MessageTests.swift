import Foundation
import TestSupport
import Testing
import WaypostCore

@testable import WaypostControl

@Suite struct MessageTests {
    private func text(_ message: some ControlMessage) -> String {
        String(decoding: ControlFrame.reply(to: 1) { message }, as: UTF8.self)
    }

    @Test func absentMembersAreLeftOutAndNumbersHaveTheirPlaces() {
        var reply = OrderReply()
        reply.rows = 3
        reply.nextAttempt = 114
        #expect(text(reply) == #"{"id":1,"ok":true,"rows":3,"next_attempt_s":114.0}"#)
        reply.nextAttempt = .infinity
        #expect(text(reply) == #"{"id":1,"ok":true,"rows":3}"#)
        #expect(text(Acknowledgement()) == #"{"id":1,"ok":true}"#)
    }

    @Test func membersOfAnInlineFieldStandBesideTheOthers() {
        var engine = EngineStatus()
        engine.mode = "constant"
        engine.resolution = ResolutionValue(priority: "high", intervalMs: 1000, displacement: 5)
        #expect(
            text(EngineReply(engine))
                == #"{"id":1,"ok":true,"engine":{"mode":"constant","priority":"high","interval_ms":1000,"displacement":5.0}}"#
        )
    }

    @Test func aCopyKeepsItsValueWhenTheOriginalChanges() {
        var first = OrderReply()
        first.rows = 1
        var second = first
        second.rows = 2
        #expect(first.rows == 1 && second.rows == 2)
    }

    @Test func aStatusIsReadBackAsItWasWritten() throws {
        var status = Status()
        status.problems = ["a", "b"]
        status.motion.rejected = Named([("accuracy", 3), ("age", 1)])
        var trackable = TrackableStatus()
        trackable.subscribers = 2
        status.motion.resolutions = Named([("van", trackable)])
        status.source.gpsd = GPSDStatus()
        var endpoint = EndpointStatus()
        endpoint.failed = Named([("dns", 2)])
        status.endpoints = [endpoint, endpoint]
        let read: Status = try ControlFrame.read(ControlFrame.reply(to: 1) { status })
        #expect(text(read) == text(status))
    }

    @Test func aListThatFillsTheFrameEndsWithTheNumberOfItsOtherEntries() throws {
        var status = Status()
        status.endpoints = (0..<600).map { index in
            var endpoint = EndpointStatus()
            endpoint.name = "endpoint-\(index)"
            endpoint.problem = String(repeating: "x", count: 400)
            return endpoint
        }
        let frame = ControlFrame.reply(to: 1) { status }
        #expect(frame.count < ControlFrame.bytesMax)
        let read: Status = try ControlFrame.read(frame)
        #expect(read.endpoints.count + (read.endpointsMore ?? 0) == 600 && read.endpoints.count > 100)
    }

    @Test(arguments: [
        #"{"do":"pace","moving":"yes"}"#, #"{"do":"pace","moving":1}"#, #"{"id":"x","do":"pace"}"#,
        #"{"id":1.5,"do":"pace"}"#,
    ])
    func aValueOfTheWrongKindIsNoRequest(_ line: String) {
        do throws(ControlError) {
            let request: PaceRequest = try RequestFrame(Array(line.utf8)).read()
            Issue.record("\(line) was read as \(request)")
        } catch {
            #expect(error.code == "bad-frame")
        }
    }

    @Test func membersThatAreNullOrUnknownAreIgnored() throws {
        let line = #"{"id":7.0,"do":"pace","moving":null,"later":{"a":[]}}"#
        let frame = try RequestFrame(Array(line.utf8))
        let request: PaceRequest = try frame.read()
        #expect(frame.id == 7 && request.moving == nil)
    }

    @Test(arguments: Verb.allCases)
    func eachVerbExplainsItself(_ verb: Verb) throws {
        var request = HelpRequest()
        request.verb = verb.rawValue
        let help: Help = try ControlFrame.read(ControlFrame.reply(to: nil) { try! Help(request) })
        let entry = try #require(help.verbs.first)
        #expect(entry.verb == verb.rawValue && entry.meaning.hasSuffix("."))
        for field in entry.fields + (entry.reply ?? []) {
            #expect(!field.name.isEmpty && !field.type.isEmpty && !field.meaning.isEmpty, "\(field.name) of \(verb)")
        }
    }

    @Test func helpFitsIntoAFrameAndNamesFieldsByTheirPath() throws {
        let all: Help = try ControlFrame.read(ControlFrame.reply(to: nil) { try! Help(HelpRequest()) })
        #expect(all.verbs.map(\.verb) == Verb.allCases.map(\.rawValue))
        let names = Status.fieldHelp.map(\.name)
        for name in ["motion.engine.priority", "motion.resolutions.*.near", "endpoints[].acked", "queue.queue_depth"] {
            #expect(names.contains(name), "\(name)")
        }
    }

    /// Each line of `docs/control-socket.md` is a request that the daemon understands, or a reply that it could give.
    @Test func theExamplesOfTheDocumentationHold() throws {
        let page = try String(
            contentsOf: BuiltProducts.repository.appendingPathComponent("docs/control-socket.md"), encoding: .utf8)
        let lines = page.split(separator: "\n").filter { $0.hasPrefix("{") }
        #expect(!lines.isEmpty && lines.count.isMultiple(of: 2))
        for pair in stride(from: 0, to: lines.count, by: 2) {
            let frame = try RequestFrame(Array(lines[pair].utf8))
            let verb = try #require(Verb(rawValue: frame.verb), "\(lines[pair])")
            try check(verb.request, frame, String(lines[pair + 1]))
        }
    }

    private func check<Request: ControlRequest>(
        _ type: Request.Type, _ frame: RequestFrame, _ reply: String
    ) throws {
        do throws(ControlError) {
            let _: Request = try frame.read()
            let answer: Request.Reply = try ControlFrame.read(Array(reply.utf8))
            #expect(String(decoding: ControlFrame.reply(to: frame.id) { answer }, as: UTF8.self) == reply)
        } catch {
            #expect(String(decoding: ControlFrame.failure(id: nil, error), as: UTF8.self) == reply)
        }
    }
}
