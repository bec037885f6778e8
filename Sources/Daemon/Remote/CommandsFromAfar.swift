import Remote
import WaypostControl
import WaypostCore
import WaypostHost

/// Decides about commands of a server, has them carried out once their ids are stored, and answers.
final class CommandsFromAfar {
    /// What else the answer says, if anything, or why it was not carried out.
    typealias Outcome = Result<JSONValue?, ControlError>

    private let policy: () -> RemotePolicy
    private let signatures: SignatureCheck
    private let store: RemoteStore
    private let way: any RemoteWay
    private let log: AgentLog
    private let loop: EventLoop
    private let carryOut: (RemoteCommand.Task, EventTime, @escaping (Outcome) -> Void) -> Void
    private let time: (EventTime) -> UTCTime?
    private let trustedTime: (EventTime) -> UTCTime?
    private var forgeryLines = LineBudget.ofOthers
    private(set) var ran = 0
    private(set) var last: (words: String, at: EventTime)?

    /// - Parameters:
    ///   - policy: as the file says now.
    ///   - time, trustedTime: as of `RemoteCommands`.
    ///   - carryOut: calls back once, perhaps later.
    init(
        _ policy: @escaping () -> RemotePolicy, signatures: SignatureCheck, store: RemoteStore, way: any RemoteWay,
        log: AgentLog,
        loop: EventLoop, time: @escaping (EventTime) -> UTCTime?, trustedTime: @escaping (EventTime) -> UTCTime?,
        carryOut: @escaping (RemoteCommand.Task, EventTime, @escaping (Outcome) -> Void) -> Void
    ) {
        self.policy = policy
        self.signatures = signatures
        self.store = store
        self.way = way
        self.log = log
        self.loop = loop
        self.time = time
        self.trustedTime = trustedTime
        self.carryOut = carryOut
    }

    /// To the last command that was refused; nil = none was since the start.
    var lastRefusal: RemoteAnswer? { store.memory.commands.lastRefusal }
    var refused: Int { store.memory.commands.refused }

    /// - Parameter isRetained: the broker would deliver it again at each connection.
    func received(_ bytes: [UInt8], signature: String?, isRetained: Bool, at now: EventTime) {
        if let problem = signatures.problem(of: bytes, for: .command, signature) {
            // Whoever cannot sign gets no answer.
            store.memory.commands.forged(problem)
            if case .write(let withheld) = forgeryLines.spend(at: now) {
                let more = withheld > 0 ? " (\(withheld) before this one were not logged)" : ""
                log.warning("a command was refused: \(problem)\(more)")
            }
            return
        }
        let outcome = store.memory.commands.received(
            bytes, isRetained: isRetained, policy: policy(), at: now, time: time(now), trusted: trustedTime(now))
        switch outcome {
        case .ignored: break
        case .answer(let answer):
            if let code = answer.code { log.commandRefused(answer.id, code, answer.message) }
            way.answer(answer.json)
        case .run(let command):
            store.save(at: now) { [weak self] failure in self?.stored(command, failure) }
        }
    }

    private func stored(_ command: RemoteCommand, _ failure: String?) {
        if let failure { return finish(command, RemoteAnswer(id: command.id, code: "disk", message: failure)) }
        let now = loop.now
        // A worn card may take longer than a command may wait.
        guard !command.hasExpired(at: time(now)) else {
            let message = "it has expired while its id was stored"
            return finish(command, RemoteAnswer(id: command.id, code: "expired", message: message))
        }
        ran += 1
        carryOut(command.task, now) { [weak self] outcome in
            let answer =
                switch outcome {
                case .success(let result): RemoteAnswer(id: command.id, result: result)
                case .failure(let error): RemoteAnswer(id: command.id, code: error.code, message: error.message)
                }
            self?.finish(command, answer)
        }
    }

    private func finish(_ command: RemoteCommand, _ answer: RemoteAnswer) {
        let now = loop.now
        let words = answer.code.map { "\($0), \(answer.message)" } ?? "done"
        log.commandEnded(command.id, command.task.verb.rawValue, words)
        last = ("\(command.task.verb.rawValue) (\(command.id)): \(words)", now)
        store.memory.commands.finished(answer)
        store.save(at: now)
        way.answer(answer.json)
    }
}
