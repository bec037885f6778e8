import ControlProtocol
import JSON
import Positioning
import Remote

/// Decides about commands of a server, has them carried out once their ids are stored, and answers.
final class CommandsFromAfar {
    /// What else the answer says, if anything, or why it was not carried out.
    typealias Outcome = Result<JSONValue?, ControlError>

    private let policy: RemotePolicy
    private let signatures: SignatureCheck
    private let store: RemoteStore
    private let way: any RemoteWay
    private let log: AgentLog
    private let carryOut: (RemoteCommand.Task, EventTime, @escaping (Outcome) -> Void) -> Void
    private let time: (EventTime) -> UTCTime?
    private var isForgeryLogged = false
    private(set) var ran = 0
    private(set) var last: (words: String, at: EventTime)?

    /// - Parameters:
    ///   - time: nil while nothing is known of it.
    ///   - carryOut: calls back once, perhaps later.
    init(
        _ policy: RemotePolicy, signatures: SignatureCheck, store: RemoteStore, way: any RemoteWay, log: AgentLog,
        time: @escaping (EventTime) -> UTCTime?,
        carryOut: @escaping (RemoteCommand.Task, EventTime, @escaping (Outcome) -> Void) -> Void
    ) {
        self.policy = policy
        self.signatures = signatures
        self.store = store
        self.way = way
        self.log = log
        self.time = time
        self.carryOut = carryOut
    }

    /// - Returns: that of one that was not carried out and told why; nil = there was none since the start.
    var lastRefusal: RemoteAnswer? { store.memory.commands.lastRefusal }
    var refused: Int { store.memory.commands.refused }

    /// - Parameter isRetained: the broker would deliver it again at each connection.
    func received(_ bytes: [UInt8], signature: String?, isRetained: Bool, at now: EventTime) {
        if let problem = signatures.problem(of: bytes, signature) {
            // Who cannot sign gets no answer.
            if !isForgeryLogged { log.warning("a command was refused: \(problem)") }
            isForgeryLogged = true
            return
        }
        switch store.memory.commands.received(bytes, isRetained: isRetained, policy: policy, at: now, time: time(now)) {
        case .ignored: break
        case .answer(let answer):
            if let code = answer.code { log.commandRefused(answer.id, code, answer.message) }
            way.answer(answer.json)
        case .run(let command):
            store.save(at: now) { [weak self] failure in self?.stored(command, failure, at: now) }
        }
    }

    private func stored(_ command: RemoteCommand, _ failure: String?, at now: EventTime) {
        if let failure { return finish(command, RemoteAnswer(id: command.id, code: "disk", message: failure), at: now) }
        ran += 1
        carryOut(command.task, now) { [weak self] outcome in
            let answer =
                switch outcome {
                case .success(let result): RemoteAnswer(id: command.id, result: result)
                case .failure(let error): RemoteAnswer(id: command.id, code: error.code, message: error.message)
                }
            self?.finish(command, answer, at: now)
        }
    }

    private func finish(_ command: RemoteCommand, _ answer: RemoteAnswer, at now: EventTime) {
        let words = answer.code.map { "\($0), \(answer.message)" } ?? "done"
        log.commandEnded(command.id, command.task.verb.rawValue, words)
        last = ("\(command.task.verb.rawValue) (\(command.id)): \(words)", now)
        store.memory.commands.finished(answer)
        store.save(at: now)
        way.answer(answer.json)
    }
}
