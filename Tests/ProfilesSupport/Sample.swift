import Profiles
import WaypostCore

/// A profile written as a literal.
package struct Tree: ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    package var node: ProfileNode

    package init(_ node: ProfileNode) { self.node = node }
    package init(stringLiteral text: String) { node = ProfileNode(.string(text)) }
    package init(arrayLiteral items: Tree...) { node = ProfileNode(.array(items.map(\.node))) }
    package init(dictionaryLiteral members: (String, Tree)...) {
        node = ProfileNode(.table(members.map { ProfileNode.Member($0.0, $0.1.node) }))
    }
    package init(integerLiteral number: Int64) { node = ProfileNode(.integer(number)) }
    package init(floatLiteral number: Double) { node = ProfileNode(.float(number)) }
    package init(booleanLiteral flag: Bool) { node = ProfileNode(.boolean(flag)) }
}

package enum Sample {
    package static let boot = "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"
    package static let outbox: [UInt8] = [
        0x7F, 0x3A, 0x91, 0xC2, 0x5B, 0x0E, 0x4D, 0x19, 0x8C, 0x27, 0x61, 0xE4, 0xA0, 0xD3, 0xF5, 0x92,
    ]
    package static let constants = ProfileConstants(
        endpoint: "main", baseURL: "https://fleet.example/api", device: "van-7", agentVersion: "1.2.3",
        vars: ["asset_id": "a-1"], secrets: ["key"])
    package static let context = RenderContext(
        identify: { _, seq in "id-\(seq)" }, secrets: RequestSecrets(values: ["key": "s3 cret"], token: "t0k"))

    /// The published sample S.
    package static var row: QueuedLocation {
        QueuedLocation(
            seq: 1041, bootID: boot, receivedMs: 1_700_000_000_900,
            location: Location(
                trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_123), at: .zero,
                coordinate: Coordinate(latitudeE7: 525_200_066, longitudeE7: 134_049_540), altitudeMSL: 34.1,
                altitudeHAE: 73.7, horizontalAccuracy: 4.5, speed: 12.3, course: 271.0, hdop: 0.9, satellitesUsed: 9,
                mode: .threeD, quality: .dgps, moving: true, reason: "displacement", odometer: 15_230.4,
                power: PowerState(batteryPercent: 87, charging: true, externalPower: true)))
    }

    /// The published sample E.
    package static var crossing: QueuedLocation {
        var row = row
        row.location.event = .geofence
        row.location.geofence = GeofenceCrossing(id: "f-1", name: "Depot North", action: .enter)
        return row
    }

    /// Time and position only.
    package static func bare(seq: Int64) -> QueuedLocation {
        QueuedLocation(
            seq: seq, bootID: nil, receivedMs: nil,
            location: Location(
                trackable: "van-7", time: UTCTime(milliseconds: 1_700_000_000_000 + seq), at: .zero,
                coordinate: Coordinate(latitudeE7: 1, longitudeE7: -1), moving: false))
    }

    package static func batch(_ rows: [QueuedLocation], sentMs: Int64? = 1_700_000_020_500) -> Batch {
        let (first, last) = (rows.first?.seq ?? 0, rows.last?.seq ?? 0)
        return Batch(endpoint: "main", id: "7f3a91c2-main-\(first)-\(last)", rows: rows, sentMs: sentMs, outbox: outbox)
    }

    package static func settings(_ profile: Profile) -> EndpointSettings {
        EndpointSettings(baseURL: constants.baseURL, device: constants.device, profile: profile)
    }

    package static func settings(
        _ tree: Tree, constants: ProfileConstants = Sample.constants
    ) throws(ProfileProblems) -> EndpointSettings {
        settings(try Profile.compile("test", tree: tree.node, constants: constants).get())
    }

    /// The mistakes of a tree; empty = it is good.
    package static func problems(_ tree: Tree, constants: ProfileConstants = Sample.constants) -> [ProfileProblem] {
        switch Profile.compile("test", tree: tree.node, constants: constants) {
        case .success: []
        case .failure(let problems): problems.list
        }
    }

    /// The body of one record, made of a template.
    package static func record(
        _ record: Tree, _ row: QueuedLocation = Sample.row, ascii: Bool = false
    ) throws(ProfileProblems) -> String {
        let tree: Tree = [
            "max_records": 1, "ascii": Tree(ProfileNode(.boolean(ascii))), "record": record, "body": "$record",
        ]
        return try body(tree, [row])
    }

    package static func body(_ tree: Tree, _ rows: [QueuedLocation] = [Sample.row]) throws(ProfileProblems) -> String {
        String(decoding: try RequestRenderer(settings(tree), in: context).request(for: batch(rows)).body, as: UTF8.self)
    }

    package static func url(_ tree: Tree, _ row: QueuedLocation = Sample.row) throws(ProfileProblems) -> String {
        try RequestRenderer(settings(tree), in: context).request(for: batch([row])).url
    }
}
