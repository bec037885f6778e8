import WaypostCore

/// Something that a server asks of this device at once. None loses a row, and none runs a program.
package struct RemoteCommand: Hashable, Sendable {
    /// Bytes of its text.
    package static let bytesMax = 4096
    private static let idMax = 64
    /// Seconds for which the finest resolution is asked for.
    private static let boostLimits: ClosedRange<Int64> = 1...3600
    private static let members: Set<String> = ["id", "do", "device", "expires", "for", "moving"]

    /// What may stand in `commands` of the file.
    package enum Verb: String, CaseIterable, Sendable {
        case locate, flush, boost, refresh, status, pace
        case fenceRefresh = "fence-refresh"
    }

    package enum Task: Hashable, Sendable {
        /// A fix, also from a receiver that sleeps, recorded and sent at once.
        case locate
        case flush
        /// The finest resolution for a while.
        case boost(Duration)
        case refresh
        case status
        /// The lists of geofences and beacons are asked for again.
        case fenceRefresh
        /// nil = as the motion detector finds it.
        case pace(isMoving: Bool?)

        package var verb: Verb {
            switch self {
            case .locate: .locate
            case .flush: .flush
            case .boost: .boost
            case .refresh: .refresh
            case .status: .status
            case .fenceRefresh: .fenceRefresh
            case .pace: .pace
            }
        }
    }

    /// Chosen by the server; the same one again is the same command.
    package var id: String
    package var task: Task
    /// nil = the text names none.
    package var device: String?
    package var expires: UTCTime

    package func hasExpired(at time: UTCTime?) -> Bool { time.map { expires < $0 } ?? true }

    /// Why a text is no command.
    struct Unusable: Error {
        /// nil = without one there can be no answer.
        var id: String?
        var reason: String
    }

    init(_ bytes: [UInt8]) throws(Unusable) {
        guard let value = JSONReader.read(bytes, bytesMax: Self.bytesMax), let members = value.members,
            !value.repeatsAName
        else { throw Unusable(reason: "not a JSON object of at most \(Self.bytesMax) bytes") }
        guard let id = value["id"]?.string, Self.isUsable(id) else {
            throw Unusable(reason: "id is missing, or not 1 to \(Self.idMax) printable characters of ASCII")
        }
        if let unknown = members.first(where: { !Self.members.contains($0.name) }) {
            throw Unusable(id: id, reason: "unknown member \(unknown.name.visible(bytesMax: 64))")
        }
        guard let expires = value["expires"]?.string.flatMap(UTCTime.milliseconds(iso8601:)) else {
            throw Unusable(id: id, reason: "expires is missing, or not a time such as 2026-01-31T12:00:00Z")
        }
        if let device = value["device"], device.string == nil { throw Unusable(id: id, reason: "device is not a text") }
        self.id = id
        self.expires = UTCTime(milliseconds: expires)
        device = value["device"]?.string
        do throws(TaskMistake) { task = try Self.task(value) } catch { throw Unusable(id: id, reason: error.reason) }
    }

    private struct TaskMistake: Error {
        var reason: String
    }

    private static func task(_ value: JSONValue) throws(TaskMistake) -> Task {
        guard let verb = value["do"]?.string.flatMap(Verb.init) else {
            throw TaskMistake(reason: "do is none of \(Verb.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        switch verb {
        case .locate: return .locate
        case .flush: return .flush
        case .refresh: return .refresh
        case .status: return .status
        case .fenceRefresh: return .fenceRefresh
        case .boost:
            guard let written = value["for"] else { return .boost(.seconds(boostLimits.upperBound)) }
            let duration = written.string.flatMap(Duration.init(remoteText:))
            guard let seconds = written.integer ?? duration?.components.seconds, boostLimits.contains(seconds) else {
                throw TaskMistake(reason: "for is not a duration from 1s to 1h")
            }
            return .boost(.seconds(seconds))
        case .pace:
            guard let written = value["moving"], written != .null else { return .pace(isMoving: nil) }
            guard let isMoving = written.bool else { throw TaskMistake(reason: "moving is not true or false") }
            return .pace(isMoving: isMoving)
        }
    }

    /// It goes into answers and log lines as it is.
    private static func isUsable(_ id: String) -> Bool {
        (1...idMax).contains(id.utf8.count)
            && id.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
    }
}
