import Configuration
import Network
import Profiles
import WaypostCore

/// Bytes of the request bodies that would carry locations, in batches as the daemon sends them.
struct UploadSize {
    private static let batchSize = 100
    /// The ids of real ones are as long and as random.
    private static let outbox: [UInt8] = (0..<16).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ 41) }
    private static let boot = "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071"
    /// Milliseconds from a measurement to its arrival.
    private static let arrivalMs: Int64 = 200

    private let profiles: [EndpointSettings]
    private var rows: [QueuedLocation] = []
    private var seq: Int64 = 0
    /// For each profile.
    private(set) var bytes: [Int]

    /// - Parameter profiles: names of built-in ones.
    init(_ profiles: [String]) {
        self.profiles = profiles.compactMap(Self.settings)
        bytes = self.profiles.map { _ in 0 }
    }

    mutating func add(_ location: Location) {
        seq += 1
        rows.append(
            QueuedLocation(
                seq: seq, bootID: Self.boot, receivedMs: location.time.milliseconds + Self.arrivalMs,
                location: location))
        if rows.count == Self.batchSize { sendBatch() }
    }

    mutating func finish() {
        if !rows.isEmpty { sendBatch() }
    }

    private mutating func sendBatch() {
        let batch = Batch(
            endpoint: "main", id: "29abc1e8-main-\(seq - Int64(rows.count) + 1)-\(seq)", rows: rows,
            sentMs: rows.last?.receivedMs, outbox: Self.outbox)
        for (index, settings) in profiles.enumerated() {
            let context = RenderContext(identify: RecordID.make, gzip: true)
            let body = RequestRenderer(settings, in: context).request(for: batch).body
            bytes[index] += Deflate.compress(body, as: .gzip)?.count ?? body.count
        }
        rows.removeAll(keepingCapacity: true)
    }

    private static func settings(_ name: String) -> EndpointSettings? {
        guard case .success(let tree) = ProfileLibrary().resolve(name) else { return nil }
        let constants = ProfileConstants(endpoint: "main", baseURL: "http://127.0.0.1", device: "device")
        guard case .success(let profile) = Profiles.Profile.compile(name, tree: tree, constants: constants) else {
            return nil
        }
        return EndpointSettings(baseURL: constants.baseURL, device: constants.device, profile: profile)
    }
}
