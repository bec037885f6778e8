import WaypostCore

/// Decides which commands of a server are carried out, and remembers what became of them.
///
/// Each command is carried out at most once, over restarts too: its id is stored before anything is done.
package struct RemoteCommands: Hashable, Sendable {
    /// Ids that are remembered.
    package static let remembered = 32
    /// The longest that a command may wait on its way. Later ones could not be told from replayed ones.
    private static let aheadMax: Int64 = 60_000
    private static let perHour = 30

    package enum Outcome: Hashable, Sendable {
        /// Store the state, carry it out, and report to `finished`.
        case run(RemoteCommand)
        case answer(RemoteAnswer)
        /// There have been too many: not even an answer.
        case ignored
    }

    private struct Known: Hashable, Sendable {
        var id: String
        /// nil = begun: the daemon may have ended meanwhile.
        var answer: RemoteAnswer?
    }

    /// The newest last.
    private var known: [Known] = []
    private var runs = ChangeBudget(limit: perHour, window: .seconds(3600))
    /// A flood of commands must not become a flood of answers.
    private var refusals = ChangeBudget(limit: perHour, window: .seconds(3600))
    package private(set) var refused = 0
    package private(set) var lastRefusal: RemoteAnswer?

    package init() {}

    /// - Parameters:
    ///   - isRetained: the broker has kept it, and would deliver it again at each connection.
    ///   - time: good enough for `expires`; nil = nothing is known of it.
    ///   - trusted: good enough to count how much time has passed over a restart; nil = it is not.
    package mutating func received(
        _ bytes: [UInt8], isRetained: Bool, policy: RemotePolicy, at now: EventTime, time: UTCTime?,
        trusted: UTCTime?
    ) -> Outcome {
        let command: RemoteCommand
        do throws(RemoteCommand.Unusable) { command = try RemoteCommand(bytes) } catch {
            return refuse(error.id, "bad-request", error.reason, at: now)
        }
        if let known = known.first(where: { $0.id == command.id }) {
            let begun = RemoteAnswer(
                id: command.id, code: "repeated", message: "begun before; what became of it is unknown")
            return answer(known.answer ?? begun, at: now)
        }
        if isRetained { return refuse(command.id, "retained", "send it without the retain flag", at: now) }
        if let reason = Self.misdirected(command, policy) {
            return refuse(command.id, "device", reason, at: now)
        }
        guard policy.commands.contains(command.task.verb) else {
            return refuse(command.id, "not-allowed", "[remote] commands does not have it", at: now)
        }
        guard let time else {
            return refuse(command.id, "clock", "the clock of this device is not trusted", at: now)
        }
        let ahead = command.expires.milliseconds(since: time)
        guard (0...Self.aheadMax).contains(ahead) else {
            let reason = ahead < 0 ? "it has expired" : "it expires more than 60 s ahead"
            return refuse(command.id, "expired", reason, at: now)
        }
        if let wait = runs.wait(at: now, time: trusted) {
            let message = "too many commands: the next in \(InWords.span(seconds: wait.inSeconds))"
            return refuse(command.id, "busy", message, at: now)
        }
        runs.use(at: now, time: trusted)
        known.append(Known(id: command.id, answer: nil))
        if known.count > Self.remembered { known.removeFirst() }
        return .run(command)
    }

    /// One came that its owner has not signed. There is no answer, not even to its id, which anybody may have written.
    /// - Parameter reason: for people.
    package mutating func forged(_ reason: String) {
        refused += 1
        lastRefusal = RemoteAnswer(id: "", code: "signature", message: reason)
    }

    /// - Parameter answer: to the server; what it has beside the code is not remembered.
    package mutating func finished(_ answer: RemoteAnswer) {
        guard let index = known.firstIndex(where: { $0.id == answer.id }) else { return }
        known[index].answer = RemoteAnswer(id: answer.id, code: answer.code, message: answer.message)
    }

    private static func misdirected(_ command: RemoteCommand, _ policy: RemotePolicy) -> String? {
        if let device = command.device { return device == policy.device ? nil : "that of another device" }
        return policy.isSigned ? "missing: a signed command names its device" : nil
    }

    private mutating func refuse(
        _ id: String?, _ code: String, _ message: String, at now: EventTime
    ) -> Outcome {
        refused += 1
        let refusal = RemoteAnswer(id: id ?? "", code: code, message: message)
        lastRefusal = refusal
        return id == nil ? .ignored : answer(refusal, at: now)
    }

    private mutating func answer(_ answer: RemoteAnswer, at now: EventTime) -> Outcome {
        guard refusals.wait(at: now, time: nil) == nil else { return .ignored }
        refusals.use(at: now, time: nil)
        return .answer(answer)
    }
}

extension RemoteCommands {
    /// As it is stored.
    struct Stored: StateCoded {
        private struct Entry: StateCoded {
            static var blank: Entry { Entry(id: "", isAnswered: false, code: "", message: "") }
            var id: String
            var isAnswered: Bool
            var code: String
            var message: String

            mutating func code(_ coder: inout StateCoder) {
                coder.code(&id)
                coder.code(&isAnswered)
                coder.code(&code)
                coder.code(&message)
            }
        }

        static var blank: Stored { Stored(RemoteCommands(), at: .zero) }
        private var known: [Entry]
        private var runs: ChangeBudget.Stored

        init(_ commands: RemoteCommands, at now: EventTime) {
            known = commands.known.map {
                Entry(
                    id: $0.id, isAnswered: $0.answer != nil, code: $0.answer?.code ?? "",
                    message: $0.answer?.message ?? "")
            }
            runs = commands.runs.stored(at: now)
        }

        mutating func code(_ coder: inout StateCoder) {
            coder.code(&known)
            coder.code(&runs)
        }

        func commands(at now: EventTime) -> RemoteCommands {
            var commands = RemoteCommands()
            commands.known = known.suffix(RemoteCommands.remembered).map { entry in
                let code = entry.code.isEmpty ? nil : entry.code
                let answer = RemoteAnswer(id: entry.id, code: code, message: entry.message)
                return Known(id: entry.id, answer: entry.isAnswered ? answer : nil)
            }
            commands.runs.restore(runs, at: now)
            return commands
        }
    }
}
