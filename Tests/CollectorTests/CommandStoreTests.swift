import Foundation
import Testing

@testable import waypost_collector

@Suite("Commands for devices") struct CommandStoreTests {
    private var store = CommandStore()
    /// 2026-11-26T10:00:00Z
    private let now: Int64 = 1_795_687_200_000

    private func command(_ id: String, expires: String = "2026-11-26T10:00:30Z", more: String = "") -> [UInt8] {
        Array(#"{"id":"\#(id)","do":"locate","expires":"\#(expires)"\#(more)}"#.utf8)
    }

    /// The status of the answer to who sends it.
    private mutating func send(_ id: String, at later: Int64 = 0) -> Int {
        store.send(command(id), to: "van-7", at: now + later).status
    }

    private func answer(_ id: String) -> [UInt8] { Array(#"{"id":"\#(id)","ok":true}"#.utf8) }

    /// What a person reads of the lists.
    private mutating func list(at time: Int64? = nil) -> String {
        String(decoding: store.list(of: "van-7", at: time ?? now).body, as: UTF8.self)
    }

    private func state(_ index: Int) -> CommandStore.Command.State? {
        let commands = store.commands(of: "van-7")
        return commands.indices.contains(index) ? commands[index].command.state : nil
    }

    @Test mutating func areHandedOutOnceInTheirOrderWithTheirSignature() {
        #expect(store.next(for: "van-7", at: now) == [:])
        #expect(store.send(command("c-1"), to: "van-7", signature: "sha256=aa", at: now).status == 202)
        #expect(send("c-2") == 202)
        let handedOut: [[String: String]] = ["van-8", "van-7", "van-7", "van-7"].map { store.next(for: $0, at: now) }
        let texts: [String] = ["c-1", "c-2"].map { String(decoding: command($0), as: UTF8.self) }
        let expected: [[String: String]] = [
            [:], ["Waypost-Command": texts[0], "Waypost-Signature": "sha256=aa"], ["Waypost-Command": texts[1]], [:],
        ]
        #expect(handedOut == expected)
    }

    @Test mutating func areDroppedWhenTheyExpire() {
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.send(command("c-2", expires: "2026-11-26T10:00:50Z"), to: "van-7", at: now)
        let next = store.next(for: "van-7", at: now + 30_001)
        #expect(next["Waypost-Command"]?.contains("c-2") == true)
        #expect(state(0) == .expired && state(1) == .sent)
        let statuses: [Int] = [send("c-3", at: 30_001), send("c-3", at: 30_000)]
        #expect(statuses == [400, 202])
        #expect(list(at: now + 30_001).contains(#""expired":[{"id":"c-1""#))
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"id":"c-1","do":"locate"}"#, #"{"id":"","do":"locate","expires":"2026-11-26T10:00:30Z"}"#,
        #"{"id":"c-1","expires":"2026-11-26T10:00:30Z"}"#, #"{"id":"c-1","do":"locate","expires":"soon"}"#,
        #"{"id":"c 1","do":"locate","expires":"2026-11-26T10:00:30Z"}"#,
        #"{"id":"c-1","do":"locate","expires":"2026-11-26T10:00:30Z","device":"van-8"}"#,
        #"{"id":"c-1","do":"locate","expires":"2026-11-26T10:00:30Z"} "#,
        "{\"id\":\"c-1\",\r\n\"do\":\"locate\",\"expires\":\"2026-11-26T10:00:30Z\"}",
        #"{"id":"c-1","do":"é","expires":"2026-11-26T10:00:30Z"}"#,
    ])
    mutating func areRefusedWhereTheyCouldNotBeAHeaderOfThatDevice(text: String) {
        #expect(store.send(Array(text.utf8), to: "van-7", at: now).status == 400)
        #expect(store.commands(of: "van-7").isEmpty)
    }

    @Test mutating func areOfALengthThatDevicesRead() {
        let empty = command("c-1", more: #","device":"van-7","x":"""#)
        let room = CommandStore.bytesMax - empty.count
        for (length, status) in [(room + 1, 400), (room, 202)] {
            let filled = String(repeating: "x", count: length)
            let text = command("c-1", more: #","device":"van-7","x":"\#(filled)""#)
            #expect(store.send(text, to: "van-7", at: now).status == status)
        }
    }

    @Test mutating func areBounded() {
        for number in 0..<CommandStore.waitingMax { #expect(send("c-\(number)") == 202) }
        let beyond: [Int] = [send("c-0"), send("more")]
        #expect(beyond == [409, 429])
        var refused: [Int] = []
        for number in 0..<100 {
            _ = store.next(for: "van-7", at: now)
            let isSent = send("d-\(number)") == 202
            if !isSent || store.answered(answer("d-\(number)"), by: "van-7").status != 204 { refused.append(number) }
        }
        #expect(refused.isEmpty)
        #expect(store.commands(of: "van-7").count == CommandStore.waitingMax + CommandStore.rememberedMax)
        #expect(list().components(separatedBy: #""ok":true"#).count - 1 == CommandStore.rememberedMax)
        for number in 0..<1000 { _ = store.answered(answer("c-1"), by: "other-\(number)") }
        let tooMany = "one too many"
        #expect(store.answered(answer("c-1"), by: tooMany).status == 507)
        #expect(store.send(command("c-1"), to: tooMany, at: now).status == 507)
    }

    @Test mutating func haveAnswers() {
        #expect(store.list(of: "van-7", at: now).status == 404)
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.next(for: "van-7", at: now)
        #expect(store.commands(of: "van-7").first?.answer == nil)
        let answers: [[UInt8]] = [Array("no answer".utf8), Array(#"{"id":17}"#.utf8), answer("c-1")]
        let statuses: [Int] = answers.map { store.answered($0, by: "van-7").status }
        #expect(statuses == [400, 400, 204])
        #expect(store.commands(of: "van-7").first?.answer?["ok"]?.bool == true)
        let sent = String(decoding: command("c-1"), as: UTF8.self)
        #expect(list() == #"{"waiting":[],"sent":[\#(sent)],"expired":[],"answers":[{"id":"c-1","ok":true}]}"#)
    }

    /// An answer that gets lost is not sent again: the author repeats the command.
    @Test mutating func canBeRepeated() {
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.next(for: "van-7", at: now)
        _ = store.answered(answer("c-1"), by: "van-7")
        #expect(send("c-1") == 202)
        let commands = store.commands(of: "van-7")
        #expect(commands.count == 1 && commands.first?.answer == nil)
        #expect(store.next(for: "van-7", at: now)["Waypost-Command"] != nil)
    }
}
