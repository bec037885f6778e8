import Testing
import WaypostCore

@testable import Remote

@Suite("Commands from afar") struct RemoteCommandsTests {
    private static let policy = RemotePolicy(device: "van-7", commands: [.locate, .boost, .pace, .status])
    private var commands = RemoteCommands()

    private mutating func receive(
        _ text: String, isRetained: Bool = false, policy: RemotePolicy = policy, at now: Double = 0,
        isTrusted: Bool = true
    ) -> RemoteCommands.Outcome {
        commands.received(
            Array(text.utf8), isRetained: isRetained, policy: policy, at: seconds(now),
            time: isTrusted ? utc(now) : nil, trusted: nil)
    }

    private func text(_ id: String, _ rest: String = #""do":"locate""#, expires: Double = 30) -> String {
        #"{"id":"\#(id)",\#(rest),"expires":"\#(utc(expires).iso8601)"}"#
    }

    private func code(_ outcome: RemoteCommands.Outcome) -> String {
        switch outcome {
        case .run: "run"
        case .answer(let answer): answer.code ?? "ok"
        case .ignored: "ignored"
        }
    }

    @Test mutating func areCarriedOutOnce() {
        #expect(code(receive(text("c-1"))) == "run")
        #expect(code(receive(text("c-1"))) == "repeated", "it was begun")
        commands.finished(RemoteAnswer(id: "c-1", result: .int(1)))
        #expect(receive(text("c-1"), at: 600) == .answer(RemoteAnswer(id: "c-1")), "from memory, expired or not")
    }

    @Test mutating func areRememberedOverARestart() throws {
        _ = receive(text("c-1"))
        commands.finished(RemoteAnswer(id: "c-1", code: "no-fix", message: "the receiver is silent"))
        var memory = RemoteMemory()
        memory.commands = commands
        commands = try #require(RemoteMemory(memory.bytes(at: seconds(5)), at: .zero)).commands
        #expect(code(receive(text("c-1"), at: 6)) == "no-fix")
    }

    @Test mutating func readWhatTheyAskFor() {
        let rows: [(rest: String, task: RemoteCommand.Task)] = [
            (#""do":"boost""#, .boost(.seconds(3600))), (#""do":"boost","for":"10m""#, .boost(.seconds(600))),
            (#""do":"boost","for":60"#, .boost(.seconds(60))), (#""do":"pace","moving":true"#, .pace(isMoving: true)),
            (#""do":"pace""#, .pace(isMoving: nil)), (#""do":"status""#, .status),
        ]
        for (number, row) in rows.enumerated() {
            var read: RemoteCommand.Task?
            if case .run(let command) = receive(text("\(number)", row.rest)) { read = command.task }
            #expect(read == row.task, "\(row.rest)")
        }
    }

    @Test mutating func areRefusedWithACode() {
        let rows: [(text: String, code: String)] = [
            (#"{"do":"locate"}"#, "ignored"), (#"no"#, "ignored"), (#"{"id":"","do":"locate"}"#, "ignored"),
            (#"{"id":"a","do":"locate"}"#, "bad-request"), (text("b", #""do":"shell""#), "bad-request"),
            (text("c", #""do":"locate","run":"x""#), "bad-request"),
            (text("d", #""do":"boost","for":"2h""#), "bad-request"),
            (text("e", #""do":"flush""#), "not-allowed"), (text("f", expires: -1), "expired"),
            (text("g", expires: 61), "expired"),
            (#"{"id":"h","do":"locate","expires":"2026-11-26T12:01:00Z"}"#, "run"),
            (text("i", #""do":"locate","device":"van-8""#), "device"),
        ]
        for (text, expected) in rows { #expect(code(receive(text)) == expected, "\(text)") }
    }

    @Test mutating func areRefusedWhereTheyWouldComeAgain() {
        #expect(code(receive(text("c-1"), isRetained: true)) == "retained")
        #expect(code(receive(text("c-1"), isTrusted: false)) == "clock")
        var signed = Self.policy
        signed.isSigned = true
        #expect(code(receive(text("c-1"), policy: signed)) == "device", "others share the key")
        #expect(code(receive(text("c-1", #""do":"locate","device":"van-7""#), policy: signed)) == "run")
    }

    @Test mutating func areThirtyAnHour() {
        for number in 0..<30 {
            let now = Double(number)
            #expect(code(receive(text("c-\(number)", expires: now + 30), at: now)) == "run")
        }
        #expect(code(receive(text("next", expires: 60), at: 31)) == "busy")
        #expect(code(receive(text("later", expires: 3630), at: 3600)) == "run")
    }

    @Test mutating func aFloodIsNotAnswered() {
        var count = 0
        for number in 0..<10_000 {
            if code(receive(text("c-\(number)", #""do":"flush""#))) != "ignored" { count += 1 }
        }
        #expect(count == 30)
        #expect(commands.refused == 10_000)
    }

    @Test mutating func anAnswerSaysWhatBecameOfIt() {
        func json(_ answer: RemoteAnswer) -> String { String(decoding: answer.json, as: UTF8.self) }
        #expect(json(RemoteAnswer(id: "c-1")) == #"{"id":"c-1","ok":true}"#)
        #expect(json(RemoteAnswer(id: "c-1", result: .int(7))) == #"{"id":"c-1","ok":true,"result":7}"#)
        #expect(
            json(RemoteAnswer(id: "c-1", code: "clock", message: "m"))
                == #"{"id":"c-1","error":{"code":"clock","message":"m"}}"#)
    }
}
