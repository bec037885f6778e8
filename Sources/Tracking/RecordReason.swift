import WaypostCore

/// Why the tracker records where the asset is although no sampler, fence or decision about motion asks for it.
public enum RecordReason: String, Sendable, CaseIterable {
    case heartbeat
    /// A heartbeat, and no fix came since the last record.
    case noFix = "no-fix"
    case powerOn = "power-on"
    case powerOff = "power-off"
    case batteryLow = "battery-low"
    /// Towed or carried: it left its place while external power was off.
    case movedWithoutPower = "moved-without-power"
    /// Fixes ended; the receiver still reports, without a position.
    case noSky = "no-sky"
    /// Fixes ended while external power was off.
    case power
    /// Fixes ended without a sign of the receiver.
    case receiverLost = "receiver-lost"
    /// No process ran.
    case restart
    /// It stands elsewhere than before a silence: nobody saw the way.
    case moved
    case panic
    /// A server asked where it is.
    case located

    public var event: LocationEvent {
        switch self {
        case .heartbeat, .noFix: .heartbeat
        case .powerOn, .powerOff, .batteryLow, .movedWithoutPower: .power
        case .noSky, .power, .receiverLost, .restart, .moved: .gap
        case .panic: .panic
        case .located: .requested
        }
    }
}

/// Why a fix begins a segment: it is recorded whatever the samplers say.
public enum SegmentOpening: String, Sendable, CaseIterable {
    /// The first fix after a gap.
    case gap
    /// The first after a jump that no vehicle makes.
    case jump
    /// The first after a boost began or ended.
    case profile
}
