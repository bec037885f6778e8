import JSON
import Positioning
import Testing

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
        func task(_ outcome: RemoteCommands.Outcome) -> RemoteCommand.Task? {
            if case .run(let command) = outcome { command.task } else { nil }
        }
        #expect(task(receive(text("1", #""do":"boost""#))) == .boost(.seconds(3600)))
        #expect(task(receive(text("2", #""do":"boost","for":"10m""#))) == .boost(.seconds(600)))
        #expect(task(receive(text("3", #""do":"boost","for":60"#))) == .boost(.seconds(60)))
        #expect(task(receive(text("4", #""do":"pace","moving":true"#))) == .pace(isMoving: true))
        #expect(task(receive(text("5", #""do":"pace""#))) == .pace(isMoving: nil))
        #expect(task(receive(text("6", #""do":"status""#))) == .status)
    }

    @Test(arguments: [
        (#"{"do":"locate"}"#, "ignored"), (#"no"#, "ignored"), (#"{"id":"","do":"locate"}"#, "ignored"),
        (#"{"id":"a","do":"locate"}"#, "bad-request"),
        (#"{"id":"a","do":"shell","expires":"2026-11-26T12:00:30Z"}"#, "bad-request"),
        (#"{"id":"a","do":"locate","expires":"2026-11-26T12:00:30Z","run":"x"}"#, "bad-request"),
        (#"{"id":"a","do":"boost","for":"2h","expires":"2026-11-26T12:00:30Z"}"#, "bad-request"),
        (#"{"id":"a","do":"flush","expires":"2026-11-26T12:00:30Z"}"#, "not-allowed"),
        (#"{"id":"a","do":"locate","expires":"2026-11-26T11:59:59Z"}"#, "expired"),
        (#"{"id":"a","do":"locate","expires":"2026-11-26T12:01:01Z"}"#, "expired"),
        (#"{"id":"a","do":"locate","expires":"2026-11-26T12:01:00Z"}"#, "run"),
        (#"{"id":"a","do":"locate","device":"van-8","expires":"2026-11-26T12:00:30Z"}"#, "device"),
    ])
    mutating func areRefusedWithACode(_ text: String, _ code: String) {
        #expect(self.code(receive(text)) == code)
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
