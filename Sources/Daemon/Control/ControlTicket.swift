import Glibc
import WaypostControl

/// One request on the control socket: who asks, and how to answer later.
final class ControlTicket {
    /// The longest that a postponed answer may take.
    static let timeout = Duration.seconds(30)

    /// Effective user id; negative when the kernel does not report it.
    let peer: Int64
    private let id: Int?
    private(set) var isPostponed = false
    /// The client has gone: an answer goes nowhere.
    var isAbandoned = false
    /// Set by the server once the answer is postponed; takes the frame.
    var deliver: (([UInt8]) -> Void)? {
        didSet { if let early { hand(early) } }
    }
    private var early: [UInt8]?

    init(id: Int?, peer: Int64) {
        self.id = id
        self.peer = peer
    }

    /// - Throws: where somebody else than root and the user of the daemon asks: the group may not have it.
    func requireOwner() throws(ControlError) {
        guard peer == 0 || peer == Int64(geteuid()) else {
            throw ControlError(
                "not-permitted", "this is for root and for the user that the daemon runs as", hint: "try it with sudo")
        }
    }

    /// What the handler returns is ignored; `finish` will answer.
    func postpone() { isPostponed = true }

    /// Answers, once. A client that has gone meanwhile is no error.
    func finish(_ answer: Result<any ControlMessage, ControlError>) {
        hand(ControlFrame.reply(to: id) { () throws(ControlError) in try answer.get() })
    }

    private func hand(_ frame: [UInt8]) {
        guard let deliver else { return early = frame }
        early = nil
        self.deliver = nil
        deliver(frame)
    }
}
