@testable import Configuration
@testable import Network
@testable import Profiles
@testable import Protocols
@testable import WaypostCore

/// libFuzzer entry: whatever a server answers to a batch of any built-in profile, a row that the body names as refused
/// is not settled as accepted, and half a body settles nothing where the profile reads bodies.
///
/// The last byte chooses the profile, the one before it the status and whether the body is cut, the one before that the
/// number of rows; the rest is the body, so that a body is an input as it stands.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzAnswers(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 3 else { return 0 }
    let settings = profiles[Int(data[size - 1]) % profiles.count]
    let status = [200, 200, 200, 201, 202, 204, 207, 400, 409, 500, 100, 302][Int(data[size - 2] >> 1) % 12]
    let isCut = data[size - 2] & 1 == 1
    let rows = 1 + Int(data[size - 3]) % min(10, settings.batchSize)
    let body = Array(UnsafeBufferPointer(start: data, count: size - 3))

    let batch = Batch(
        endpoint: settings.name, id: "7f3a91c2-main-1-\(rows)", rows: (1...Int64(rows)).map(row), sentMs: nil,
        outbox: [UInt8](repeating: 7, count: 16))
    let reply = UplinkReply(status: status, body: body, bodyIncomplete: isCut)
    let verdict = AnswerJudge(settings, in: RenderContext(identify: RecordID.make)).verdict(
        for: UplinkOutcome(.reply(reply)), of: batch)

    var accepted = Set<Int64>()
    switch verdict {
    case .accepted: accepted = Set(batch.rows.map(\.seq))
    case .partlyAccepted(let items):
        accepted = Set(batch.rows.map(\.seq)).subtracting(items.refused.keys).subtracting(items.again)
        demand(items.again.isDisjoint(with: items.refused.keys), "a row is refused and sent again")
        demand(items.again.union(items.refused.keys).isSubset(of: batch.rows.map(\.seq)), "a row of another batch")
        demand(!accepted.isEmpty, "nothing was taken of what is partly accepted")
    default: return 0
    }
    demand((200...299).contains(status), "status \(status) accepts")
    guard settings.profile.response.readsBodies else { return 0 }
    demand(!isCut, "half a body accepts")
    // Escapes are the reader's matter: the scanner below leaves texts as they are written.
    guard !body.contains(UInt8(ascii: "\\")) else { return 0 }
    let named = refused(in: Scanner.read(body), by: settings.profile.name, batch)
    demand(accepted.isDisjoint(with: named), "rows \(accepted.intersection(named)) are named and accepted")
    return 0
}

/// One endpoint for each built-in profile.
private let profiles: [EndpointSettings] = BuiltInProfiles.names.map { name in
    guard case .success(let tree) = ProfileLibrary().resolve(name) else { fatalError("\(name) has a mistake") }
    var constants = ProfileConstants.placeholders(for: tree)
    constants.device = "van-7"
    guard case .success(let profile) = Profile.compile(name, tree: tree, constants: constants) else {
        fatalError("\(name) does not compile")
    }
    var settings = EndpointSettings(baseURL: constants.baseURL, device: constants.device, profile: profile)
    settings.batchSize = min(10, profile.maxRecords ?? 10)
    return settings
}

private func row(_ seq: Int64) -> QueuedLocation {
    QueuedLocation(
        seq: seq, bootID: nil, receivedMs: nil,
        location: Location(
            trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_000 + seq * 1000), at: .zero,
            coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), moving: true))
}

/// The rows that a body names as refused, by the contract of the server and without the rules of the profile.
private func refused(in body: Node?, by profile: String, _ batch: Batch) -> Set<Int64> {
    var named = Set<Int64>()
    switch profile {
    case "waypost", "waypost-verbose", "waypost-compact":
        for entry in body?.entries("rejected") ?? [] {
            for seq in entry.texts("seq") { if let seq = Int64(seq) { named.insert(seq) } }
        }
    case "aws-location":
        for entry in body?.entries("Errors") ?? [] where entry.texts("DeviceId") == ["\"van-7\""] {
            for row in batch.rows where entry.texts("SampleTime").contains("\"\(row.location.time.iso8601)\"") {
                named.insert(row.seq)
            }
        }
    case "kafka-rest":
        for (index, entry) in (body?.entries("offsets") ?? []).enumerated() where index < batch.rows.count {
            if entry.texts("error_code").contains(where: { $0 != "null" }) { named.insert(batch.rows[index].seq) }
        }
    case "overland":
        if body?.texts("result") != ["\"ok\""] { named = Set(batch.rows.map(\.seq)) }
    default: break
    }
    return named
}

/// A value as it is written.
private indirect enum Node {
    case object([(name: String, value: Node)])
    case array([Node])
    case text(String)

    func members(_ name: String) -> [Node] {
        guard case .object(let members) = self else { return [] }
        return members.filter { $0.name == "\"\(name)\"" }.map(\.value)
    }

    func entries(_ name: String) -> [Node] {
        members(name).flatMap { if case .array(let entries) = $0 { entries } else { [] as [Node] } }
    }

    func texts(_ name: String) -> [String] {
        members(name).compactMap { if case .text(let text) = $0 { text } else { nil } }
    }
}

/// Reads anything that looks like JSON, apart from the reader that is judged. What it cannot make out it leaves.
private struct Scanner {
    private let bytes: [UInt8]
    private var position = 0

    static func read(_ bytes: [UInt8]) -> Node? {
        var scanner = Scanner(bytes: bytes)
        return scanner.value(depth: 0)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    }

    private mutating func next() -> UInt8? {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    private mutating func take(_ character: Character) -> Bool {
        guard next() == character.asciiValue else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) -> Node? {
        guard depth < 40, next() != nil else { return nil }
        if take("{") {
            var members: [(name: String, value: Node)] = []
            while !take("}") {
                guard let name = text(), take(":"), let value = value(depth: depth + 1) else { break }
                members.append((name, value))
                if !take(","), next() != UInt8(ascii: "}") { break }
            }
            return .object(members)
        }
        if take("[") {
            var items: [Node] = []
            while !take("]") {
                guard let item = value(depth: depth + 1) else { break }
                items.append(item)
                if !take(","), next() != UInt8(ascii: "]") { break }
            }
            return .array(items)
        }
        return text().map { .text($0) }
    }

    /// A string with its quotes, or a word.
    private mutating func text() -> String? {
        guard let first = next() else { return nil }
        let start = position
        position += 1
        if first == UInt8(ascii: "\"") {
            while position < bytes.count, bytes[position] != first { position += 1 }
            position = min(position + 1, bytes.count)
        } else {
            while position < bytes.count, !Array(" \t\r\n,:[]{}\"".utf8).contains(bytes[position]) { position += 1 }
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }
}
