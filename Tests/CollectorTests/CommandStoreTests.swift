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
        #expect(store.send(command("c-2"), to: "van-7", at: now).status == 202)
        #expect(store.next(for: "van-8", at: now) == [:])
        let first = store.next(for: "van-7", at: now)
        #expect(
            first == [
                "Waypost-Command": String(decoding: command("c-1"), as: UTF8.self), "Waypost-Signature": "sha256=aa",
            ])
        let second = store.next(for: "van-7", at: now)
        #expect(second == ["Waypost-Command": String(decoding: command("c-2"), as: UTF8.self)])
        #expect(store.next(for: "van-7", at: now) == [:])
    }

    @Test mutating func areDroppedWhenTheyExpire() {
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.send(command("c-2", expires: "2026-11-26T10:00:50Z"), to: "van-7", at: now)
        let next = store.next(for: "van-7", at: now + 30_001)
        #expect(next["Waypost-Command"]?.contains("c-2") == true)
        #expect(state(0) == .expired && state(1) == .sent)
        #expect(store.send(command("c-3"), to: "van-7", at: now + 30_001).status == 400)
        #expect(store.send(command("c-3"), to: "van-7", at: now + 30_000).status == 202)
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
        let filled = { String(repeating: "x", count: $0) }
        let longest = command("c-1", more: #","device":"van-7","x":"\#(filled(room))""#)
        let longer = command("c-2", more: #","device":"van-7","x":"\#(filled(room + 1))""#)
        #expect(store.send(longer, to: "van-7", at: now).status == 400)
        #expect(store.send(longest, to: "van-7", at: now).status == 202)
    }

    @Test mutating func areBounded() {
        for number in 0..<CommandStore.waitingMax {
            #expect(store.send(command("c-\(number)"), to: "van-7", at: now).status == 202)
        }
        #expect(store.send(command("c-0"), to: "van-7", at: now).status == 409)
        #expect(store.send(command("more"), to: "van-7", at: now).status == 429)
        for number in 0..<100 {
            _ = store.next(for: "van-7", at: now)
            #expect(store.send(command("d-\(number)"), to: "van-7", at: now).status == 202)
            #expect(store.answered(answer("d-\(number)"), by: "van-7").status == 204)
        }
        #expect(store.commands(of: "van-7").count == CommandStore.waitingMax + CommandStore.rememberedMax)
        #expect(list().components(separatedBy: #""ok":true"#).count - 1 == CommandStore.rememberedMax)
        for number in 0..<1000 { _ = store.answered(answer("c-1"), by: "other-\(number)") }
        #expect(store.answered(answer("c-1"), by: "one too many").status == 507)
        #expect(store.send(command("c-1"), to: "one too many", at: now).status == 507)
    }

    @Test mutating func haveAnswers() {
        #expect(store.list(of: "van-7", at: now).status == 404)
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.next(for: "van-7", at: now)
        #expect(store.commands(of: "van-7").first?.answer == nil)
        #expect(store.answered(Array("no answer".utf8), by: "van-7").status == 400)
        #expect(store.answered(Array(#"{"id":17}"#.utf8), by: "van-7").status == 400)
        #expect(store.answered(answer("c-1"), by: "van-7").status == 204)
        #expect(store.commands(of: "van-7").first?.answer?["ok"]?.bool == true)
        let sent = String(decoding: command("c-1"), as: UTF8.self)
        #expect(list() == #"{"waiting":[],"sent":[\#(sent)],"expired":[],"answers":[{"id":"c-1","ok":true}]}"#)
    }

    /// An answer that gets lost is not sent again: the author repeats the command.
    @Test mutating func canBeRepeated() {
        _ = store.send(command("c-1"), to: "van-7", at: now)
        _ = store.next(for: "van-7", at: now)
        _ = store.answered(answer("c-1"), by: "van-7")
        #expect(store.send(command("c-1"), to: "van-7", at: now).status == 202)
        #expect(store.commands(of: "van-7").count == 1)
        #expect(store.commands(of: "van-7").first?.answer == nil)
        #expect(store.next(for: "van-7", at: now)["Waypost-Command"] != nil)
    }
}
