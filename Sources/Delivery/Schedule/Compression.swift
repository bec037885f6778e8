import Positioning

/// Whether bodies are compressed, and whether that is what a server fails over.
///
/// After refusals and errors of the server, one attempt with the same batch goes out plain. If it is accepted, the next batch
/// is compressed again; only a second one that is accepted plain after such failures turns compression off, for a day.
struct Compression: Sendable {
    private let isWanted: Bool
    private var offUntil = EventTime.min
    /// The server has accepted a compressed body: then a failure is probably not about that.
    private var isProven = false
    /// Failures of compressed bodies in a row.
    private var failures = 0
    /// After so many of them one attempt goes out plain; nil = the first time, which depends on the kind of failure.
    private var trialAt: Int?
    /// The batch that goes out plain.
    private var plain: String?
    /// Batches in a row that were accepted plain after they had failed compressed.
    private var convictions = 0

    static let rest = Duration.seconds(86_400)

    init(isWanted: Bool) { self.isWanted = isWanted }

    /// Turned off, since the server fails over compressed bodies.
    func isOff(at now: EventTime) -> Bool { isWanted && now < offUntil }

    /// Whether the body of a batch is to be compressed.
    func applies(to batch: String, at now: EventTime) -> Bool { isWanted && now >= offUntil && batch != plain }

    /// - Returns: whether the same batch is to go out again plain before anything is concluded from this answer.
    mutating func answered(_ verdict: Verdict, to batch: String, wasCompressed: Bool, at now: EventTime) -> Bool {
        guard wasCompressed else {
            guard batch == plain else { return false }
            plain = nil
            if verdict.isAcceptance { acceptedPlain(at: now) } else { trialAt = failures * 4 }
            return false
        }
        if verdict.isAcceptance {
            self = Compression(isWanted: isWanted)
            isProven = true
            return false
        }
        guard let isRefusal = verdict.mayBeAboutCompression else { return false }
        failures += 1
        guard failures >= trialAt ?? firstTrial(isRefusal: isRefusal) else { return false }
        plain = batch
        return isRefusal
    }

    /// Taking a refused batch apart is what the plain attempt may save; a server that has accepted compressed bodies probably
    /// refuses a row. Errors pass by themselves more often.
    private func firstTrial(isRefusal: Bool) -> Int { isProven ? (isRefusal ? 5 : 3) : isRefusal ? 1 : 2 }

    private mutating func acceptedPlain(at now: EventTime) {
        (failures, trialAt) = (0, nil)
        convictions += 1
        // A server that fails at random has accepted compressed bodies too.
        guard convictions >= (isProven ? 4 : 2) else { return }
        self = Compression(isWanted: isWanted)
        offUntil = now + Self.rest
    }
}

extension Verdict {
    /// Rows were accepted, if not all of them.
    var isAcceptance: Bool {
        switch self {
        case .accepted, .partlyAccepted: true
        default: false
        }
    }

    /// Whether it is a refusal (400, 415, 422), or else an error of the server (5xx); nil = neither.
    fileprivate var mayBeAboutCompression: Bool? {
        switch self {
        case .encodingRefused: true
        case .split(let status, _), .misconfigured(let status, _), .retry(.status(let status), _):
            [400, 415, 422].contains(status) ? true : (500...599).contains(status) ? false : nil
        default: nil
        }
    }
}
