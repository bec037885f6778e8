import Profiles
import WaypostCore

/// Whether bodies are compressed, and whether that is what a server fails over.
///
/// After refusals, errors and silence of the server, one attempt with the same batch goes out plain. If it is accepted, the next batch
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

    /// - Parameter isTakenApart: it is a part of what was refused, or a row beside it.
    /// - Returns: whether the same batch is to go out again plain before anything is concluded from this answer.
    mutating func answered(
        _ verdict: Verdict, to batch: String, _ sent: DeliverySchedule.Transmission, isTakenApart: Bool = false,
        at now: EventTime
    ) -> Bool {
        guard sent.wasCompressed else {
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
        guard let sign = verdict.signOfCompression(wasWhole: sent.wasWhole) else { return false }
        // The whole was refused plain too: its parts are refused for the same row.
        if sign == .refusal, isTakenApart, trialAt != nil { return false }
        failures += 1
        guard failures >= trialAt ?? firstTrial(sign) else { return false }
        plain = batch
        return sign == .refusal
    }

    /// What may show that a compressed body is too much for a server.
    fileprivate enum Sign {
        case refusal
        case error
        /// It has read the request, and ended or answered nothing.
        case silence
    }

    /// Taking a refused batch apart is what the plain attempt may save; a server that has accepted compressed bodies probably
    /// refuses a row. Errors pass by themselves more often, and silence is more often that of the line, to which plain bodies are
    /// another burden.
    private func firstTrial(_ sign: Sign) -> Int {
        switch sign {
        case .refusal: isProven ? 5 : 1
        case .error: isProven ? 3 : 2
        case .silence: isProven ? 10 : 3
        }
    }

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
    package var isAcceptance: Bool {
        switch self {
        case .accepted, .partlyAccepted: true
        default: false
        }
    }

    /// nil = it is none.
    fileprivate func signOfCompression(wasWhole: Bool) -> Compression.Sign? {
        switch self {
        case .encodingRefused: .refusal
        case .split(let status, _), .misconfigured(let status, _), .retry(.status(let status), _):
            [400, 415, 422].contains(status) ? .refusal : (500...599).contains(status) ? .error : nil
        case .retry(.transport(let failure), _): wasWhole && failure.mayFollowRequest ? .silence : nil
        default: nil
        }
    }
}
