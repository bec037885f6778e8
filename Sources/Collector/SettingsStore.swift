import WaypostCore

/// What devices shall be set to, and what they say has become of it, by device: an example for the author of a server.
///
/// It is in memory alone, and holds documents as they came. docs/remote.md is the protocol.
struct SettingsStore {
    /// Bytes of a document or a report.
    static let bytesMax = 16 << 10
    private static let devicesMax = 1000

    private struct Desired {
        var version: Int64
        var document: [UInt8]
        /// As its author has sent it: the store need not have the key.
        var signature: String?
    }

    private var desired: [String: Desired] = [:]
    private var reported: [String: [UInt8]] = [:]

    /// An answer to a request for a document or a report.
    struct Answer: Equatable {
        var status: Int
        var headers: [String: String] = [:]
        var body: [UInt8] = []

        static func refused(_ status: Int, _ reason: String) -> Answer {
            Answer(status: status, body: Array("{\"error\":\"\(reason)\"}\n".utf8))
        }
    }

    /// What the answer to a batch announces.
    func announcement(to device: String) -> [String: String] {
        desired[device].map { ["Waypost-Settings": String($0.version)] } ?? [:]
    }

    /// - Parameter known: the value of `If-None-Match`.
    func document(of device: String, known: String?) -> Answer {
        guard let entry = desired[device] else { return .refused(404, "no settings for this device") }
        let tag = "\"\(entry.version)\""
        if known == tag { return Answer(status: 304, headers: ["ETag": tag]) }
        var headers = ["ETag": tag, "Content-Type": "application/json"]
        headers["Waypost-Signature"] = entry.signature
        return Answer(status: 200, headers: headers, body: entry.document)
    }

    /// The owner of the device wants these settings.
    mutating func want(_ document: [UInt8], for device: String, signature: String? = nil) -> Answer {
        guard document.count <= Self.bytesMax, let value = JSONReader.read(document),
            value["device"]?.string == device, let version = value["version"]?.integer, value["set"]?.members != nil
        else { return .refused(400, "not a document of this device with version and set") }
        if let entry = desired[device], version <= entry.version {
            return .refused(409, "the version is not above \(entry.version)")
        }
        guard desired[device] != nil || desired.count < Self.devicesMax else {
            return .refused(507, "too many devices")
        }
        desired[device] = Desired(version: version, document: document, signature: signature)
        return Answer(status: 204)
    }

    /// The version that a device is to have; nil = none.
    func desiredVersion(of device: String) -> Int64? { desired[device]?.version }

    /// As the device has sent it; nil = there is none.
    func reportedState(of device: String) -> JSONValue? { reported[device].flatMap { JSONReader.read($0) } }

    func report(of device: String) -> Answer {
        guard let report = reported[device] else { return .refused(404, "no report of this device") }
        return Answer(status: 200, headers: ["Content-Type": "application/json"], body: report)
    }

    mutating func report(_ report: [UInt8], from device: String) -> Answer {
        guard JSONReader.read(report)?["device"]?.string == device else {
            return .refused(400, "not a report of this device")
        }
        guard reported[device] != nil || reported.count < Self.devicesMax else {
            return .refused(507, "too many devices")
        }
        reported[device] = report
        return Answer(status: 204)
    }
}
