import ControlProtocol
import Delivery
import JSON

/// One request on the control socket: who asks, and the way to answer later than at once.
final class ControlTicket {
    /// The longest that a postponed answer may take.
    static let patience = Duration.seconds(30)

    /// Effective user id; negative when the kernel does not tell.
    let peer: Int64
    private let id: Int?
    private(set) var isPostponed = false
    /// Whoever asked has gone: an answer goes nowhere.
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

    /// What was written so far is thrown away; `finish` will answer.
    func postpone() { isPostponed = true }

    /// Answers, once. A client that has gone meanwhile is no error.
    func finish(_ members: (inout JSONWriter) throws(ControlError) -> Void) {
        hand(ControlFrame.reply(to: id, members))
    }

    private func hand(_ frame: [UInt8]) {
        guard let deliver else { return early = frame }
        early = nil
        self.deliver = nil
        deliver(frame)
    }
}
