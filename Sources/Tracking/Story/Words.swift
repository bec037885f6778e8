import WaypostCore

// Decisions of tracking in words for people, the same in `replay`, `status` and the journal.

extension Resolution {
    /// `high, every 1 s or 2 m`
    package var words: String {
        "\(priority.word), every \(InWords.interval(milliseconds: intervalMs)) or \(InWords.distance(displacement))"
    }
}

extension RecordReason {
    /// Why there was no fix, for people.
    package var words: String {
        switch self {
        case .noSky: "the receiver had no position"
        case .receiverLost: "the receiver fell silent"
        case .power: "the receiver fell silent, and external power was off"
        case .restart: "no process ran"
        case .heartbeat, .noFix, .powerOn, .powerOff, .batteryLow, .movedWithoutPower, .moved, .panic, .located:
            rawValue
        }
    }
}
