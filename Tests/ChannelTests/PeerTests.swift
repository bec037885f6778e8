import Foundation
import Testing
import WaypostCore

@testable import Channel

/// Against the real client of the service as publisher, which `scripts/live/channel` records: the same commands and the
/// same answers of the service must make the same frames. Without it the record is the one of `fixtures/live`.
@Suite("The real client as publisher") struct PeerTests {
    private static func lines() throws -> [JSONValue] {
        let folder =
            ProcessInfo.processInfo.environment["WAYPOST_LIVE_FOLDER"]
            ?? URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/../../fixtures/live"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/channel.jsonl"))
        return try bytes.split(separator: 0x0A).map { try #require(JSONReader.read(Array($0))) }
    }

    @Test func sendsTheSameFrames() throws {
        let rig = Rig(credential: .key(ChannelSecret("app.key:secret")))
        var number = 0
        var compared = 0
        for line in try Self.lines() {
            if let command = line["do"]?.string {
                let left: [String] = rig.effects.sent
                #expect(left.isEmpty, "frames that the real client does not send: \(left)")
                rig.effects = []
                // The service says something now and then.
                for _ in 0..<2 {
                    rig.pass(.seconds(20))
                    rig.receive(#"{"action":0}"#)
                }
                number += 1
                try act(command, line["presence"]?.integer, number, rig)
            } else if let query = line["opened"] {
                let request = try #require(rig.effects.openings.first)
                rig.effects.removeAll { if case .openTransport = $0 { true } else { false } }
                #expect(Self.names(request) == Self.names(of: query))
            } else if let frame = line["server"] {
                rig.receive(String(decoding: frame.bytes, as: UTF8.self))
            } else {
                let frame = try #require(line["client"])
                let index = try #require(rig.effects.firstIndex { if case .send = $0 { true } else { false } })
                guard case .send(let ours) = rig.effects.remove(at: index) else { return }
                let read = try #require(JSONReader.read(Array(ours.text.utf8)))
                #expect(Self.comparable(read) == Self.comparable(frame))
                compared += 1
            }
        }
        #expect(compared >= 17 && rig.state == .closed)
    }

    private func act(_ command: String, _ ms: Int64?, _ number: Int, _ rig: Rig) throws {
        switch command {
        case "attach", "update":
            let resolution = Resolution(priority: .balanced, intervalMs: try #require(ms), displacement: 1)
            rig.attach("van", PublisherPresence(resolution: resolution))
        case "publish": try rig.publish(number, of: "van")
        case "cut": rig.lose()
        default:
            #expect(command == "close")
            rig.act { $0.close(at: $1) }
        }
    }

    /// What the query says besides the form and the beating of hearts, which the other side has by default.
    private static func names(_ request: TransportRequest) -> Set<String> {
        Set(request.items.map(\.name) + request.secretItems.map(\.name)).subtracting(["format", "heartbeats"])
    }

    private static func names(of query: JSONValue) -> Set<String> { Set(query.members?.map(\.name) ?? []) }

    /// A frame without what the two may say differently: numbers of messages and serials of channels, their content, and
    /// what the service knows already.
    private static func comparable(_ frame: JSONValue) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        for member in frame.members ?? [] where member.value != .null {
            switch (member.name, member.value) {
            // 32: a flag that is not used any more.
            case ("flags", .int(let flags)): members["flags"] = .int(flags & ~32)
            case ("channelSerial", _): members["channelSerial"] = .string("")
            case ("messages", .array(let items)):
                members["messages"] = .array(items.map { $0.keeping(["name"]) })
                #expect(items.allSatisfy { $0["data"]?.string != nil && $0["encoding"] == nil })
            case ("presence", .array(let items)):
                members["presence"] = .array(items.map { $0.keeping(["action", "id", "data"]) })
            default: members[member.name] = member.value
            }
        }
        return members
    }
}

extension JSONValue {
    fileprivate func keeping(_ names: [String]) -> JSONValue {
        .object(names.compactMap { name in self[name].map { Member(name, $0) } })
    }
}
