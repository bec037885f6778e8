import WaypostCore
import WaypostNMEA

/// Whether gpsd reads our line too.
struct LineOwner {
    /// Failed checksums since the line was opened that make it likely.
    private static let brokenMin = 10

    private(set) var inquiry: GPSDInquiry?
    /// Why the line could not be opened; reported when gpsd has answered.
    var pending: String?
    /// Why it cannot be opened, where that is known to be gpsd.
    private(set) var problem: String?
    /// For people, where gpsd reads the line too; nil = not known.
    private(set) var remark: String?
    private var hasAsked = false
    private var atOpening: (broken: Int, good: Int)?

    /// - Returns: false when there is no gpsd to ask, or it was asked.
    mutating func ask(_ paths: [String], _ host: GPSDInquiry.Host, at now: EventTime) -> Bool {
        guard !hasAsked else { return false }
        hasAsked = true
        inquiry = GPSDInquiry(about: paths, host: host, at: now)
        return inquiry != nil
    }

    /// - Parameter isOpen: whether the line is open to us.
    mutating func answered(_ isGPSD: Bool, line: String, isOpen: Bool) {
        inquiry = nil
        let advice =
            "let waypost read it through gpsd (source kind \"gpsd\"), or set USBAUTO=false in /etc/default/gpsd"
        if isOpen {
            if isGPSD { remark = "gpsd has \(line) too, and each of the two gets only some of the bytes: \(advice)" }
        } else {
            problem = isGPSD ? "cannot open \(line): gpsd holds it: \(advice)" : pending
        }
        pending = nil
    }

    /// Two readers of one line each get pieces of sentences, or nothing.
    mutating func isSuspect(_ state: SourceState, _ counters: NMEACounters) -> Bool {
        guard !hasAsked else { return false }
        let before = atOpening ?? (counters.checksumErrors, counters.sentences)
        atOpening = before
        let broken = counters.checksumErrors - before.broken
        let good = counters.sentences - before.good
        if broken >= Self.brokenMin, broken * 4 >= good { return true }
        return state == .silent || state == .unreadable
    }
}
