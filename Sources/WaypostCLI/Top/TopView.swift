import Glibc
import WaypostControl
import WaypostCore
import WaypostHost

/// `waypost top` on a terminal: asks, draws, and waits for a key, until the user has seen enough.
final class TopView {
    /// Seconds between two pictures.
    private static let period = 1.0
    /// Seconds after which a daemon that does not answer counts as away.
    private static let answerMax = 3.0

    private let terminal: Terminal
    private let daemon: DaemonOptions
    private let session: ControlSession
    /// A flush is answered after up to half a minute: it has a connection of its own.
    private let flushing: ControlSession
    private let isASCII: Bool
    private let isColoured: Bool
    private var model = TopModel()
    /// Came already; the reply to `look` completes it.
    private var status: Status?
    /// When the daemon was asked what it has not answered yet.
    private var askedAt: Double?
    /// The answer that comes is the first of its connection.
    private var isNew = false
    private var nextAt = 0.0

    init(_ daemon: DaemonOptions, at path: String, isASCII: Bool, isColoured: Bool) throws(SystemError) {
        self.daemon = daemon
        session = ControlSession(path: path)
        flushing = ControlSession(path: path)
        self.isASCII = isASCII
        self.isColoured = isColoured
        terminal = try Terminal()
    }

    /// Wall clock of this host.
    static var now: UTCTime { UTCTime(milliseconds: HostIdentity.wallClockMs()) }

    /// Monotonic seconds.
    private var seconds: Double { HostClock.bootTime.seconds(since: .zero) }

    func run() {
        while true {
            if seconds >= nextAt {
                poll()
                // Else the answer is drawn.
                if askedAt == nil || model.absence != nil { draw() }
            }
            let rest = max(0, nextAt - seconds)
            let (events, ready) = terminal.wait(
                [session.descriptor, flushing.descriptor], milliseconds: Int32(rest * 1000) + 1)
            for event in events where !handle(event) { return }
            if ready[0] { receiveAnswers() }
            if ready[1] { receiveFlush() }
            if !events.isEmpty || ready.contains(true) { draw() }
        }
    }

    private func draw() {
        let size = terminal.size
        let now = Self.now
        let page = TopPage(
            model: model, columns: size.columns, rows: size.rows, isASCII: isASCII, now: now, seconds: seconds,
            offset: LocalTime.offset(at: now))
        terminal.show(page.lines.map { (isColoured ? $0.escaped : $0.text, $0.columns) })
    }

    /// - Returns: false = the view ends.
    private func handle(_ event: Terminal.Event) -> Bool {
        switch event {
        case .resized: break
        case .suspended: terminal.suspend()
        case .ended: return false
        case .key(let key):
            switch model.pressed(key) {
            case .quit: return false
            case .flush: flush()
            case nil: if !model.isPaused { nextAt = min(nextAt, seconds + Self.period) }
            }
        }
        return true
    }

    // MARK: Status

    private func poll() {
        nextAt = seconds + Self.period
        guard !model.isPaused else { return }
        if let askedAt {
            if seconds - askedAt > Self.answerMax { absent(SystemError("reply from the daemon", code: ETIMEDOUT)) }
            return
        }
        do throws(SystemError) {
            let look = LookRequest(after: session.descriptor < 0 ? nil : model.lastDecision)
            isNew = session.descriptor < 0
            try session.send([ControlFrame.line(StatusRequest(), id: 1), ControlFrame.line(look, id: 2)])
            askedAt = seconds
        } catch {
            absent(error)
        }
    }

    private func absent(_ error: SystemError) {
        failed(daemon.denial(error) ?? "no daemon answers: \(error)")
    }

    private func failed(_ problem: String) {
        session.close()
        askedAt = nil
        status = nil
        model.failed(problem, at: Self.now)
    }

    private func receiveAnswers() {
        do throws(SystemError) {
            for line in try session.receive() { answered(line) }
        } catch {
            // One that was idle too long is closed, which is no sign of anything.
            if askedAt != nil { absent(error) }
        }
    }

    private func answered(_ line: [UInt8]) {
        guard let known = status else {
            do throws(ControlError) { status = try ControlFrame.read(line) } catch {
                failed("the daemon does not answer with its status: \(error.message)")
            }
            return
        }
        // A daemon of an older version does not know the verb.
        let look: Look? = try? ControlFrame.read(line)
        status = nil
        askedAt = nil
        if isNew { model.connected() }
        isNew = false
        model.answered(known, look, at: seconds)
    }

    // MARK: Flush

    private func flush() {
        do throws(SystemError) {
            try flushing.send([ControlFrame.line(FlushRequest(commit: false, panic: false))])
            model.show("flushing …", at: seconds)
        } catch {
            model.show("flush: \(error)", at: seconds)
        }
    }

    private func receiveFlush() {
        do throws(SystemError) {
            for line in try flushing.receive() {
                model.show("flush: \(Self.words(line))", at: seconds)
                flushing.close()
            }
        } catch {
            model.show("flush: \(error)", at: seconds)
        }
    }

    private static func words(_ line: [UInt8]) -> String {
        do throws(ControlError) {
            let reply: FlushRequest.Reply = try ControlFrame.read(line)
            return (reply.endpoints ?? []).map { "\($0.name): \($0.accepted) accepted, \($0.waiting) waiting" }
                .joined(separator: "; ")
        } catch {
            return error.message
        }
    }
}
