import WaypostCore
import WaypostNMEA

/// What a source delivers.
package enum SourceEvent: Sendable {
    /// An epoch, and for a file the position from which to continue once everything that it led to is on disk.
    case epoch(Epoch, clock: SourceClock, position: FilePosition?)
    case stateChanged(SourceState)
    /// A followed file has no more bytes for now: from here on its epochs arrive on the boot clock.
    case caughtUp
    /// Something that people should know, reported once.
    case notice(String)
}

/// The clock that the event time of an epoch comes from.
package enum SourceClock: Hashable, Sendable {
    /// The boot clock, at the arrival of the first byte of the epoch.
    case arrival(EventTime)
    /// The time of the log itself.
    case log(EventTime)
}

/// A place in a file that survives a restart.
package struct FilePosition: Hashable, Sendable {
    package var device: UInt64
    package var inode: UInt64
    package var resume: ResumePoint

    package init(device: UInt64, inode: UInt64, resume: ResumePoint) {
        self.device = device
        self.inode = inode
        self.resume = resume
    }
}

/// A receiver as the event loop sees it. Implementations open, read, stamp and hand over; they decide nothing.
///
/// The loop watches `descriptor` and calls `descriptorReady`; it calls `deadlineReached` at `nextDeadline`. After each
/// call it reads the three properties again. No call blocks. Sources open again by themselves.
package protocol FixSource: AnyObject {
    /// For people: `serial /dev/ttyACM0`.
    var name: String { get }
    /// The descriptor to watch now; nil while closed, resting, or when epoll cannot watch it (a file).
    var descriptor: Int32? { get }
    /// Watch for writability (a connect in progress) instead of input.
    var awaitsWritability: Bool { get }
    /// Boot-clock instant of the next call that the source needs; nil = none.
    var nextDeadline: EventTime? { get }
    /// What was decoded and what was dropped since the start.
    var counters: NMEACounters { get }

    func start(at now: EventTime, _ deliver: (SourceEvent) -> Void)
    func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void)
    func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void)
    /// While paused a file is not read. Live sources ignore it: their bytes would be lost.
    func setPaused(_ paused: Bool, at now: EventTime)
    /// Asleep, a receiver's line is closed and nothing is delivered or due; awake again it is opened as at the start. A
    /// file is still read: sleep would save no power.
    /// - Parameter until: when it will be woken, for receivers that wake by themselves; nil = not known.
    /// - Returns: whether this source can sleep.
    func setAsleep(_ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void) -> Bool
    /// What tracking asks of the receiver; zero = every fix. More fixes do no harm.
    func setInterval(_ interval: Duration, at now: EventTime, _ deliver: (SourceEvent) -> Void)
    /// How the receiver keeps the requested rate; nil where nothing is asked.
    var rate: ReceiverRate? { get }
    /// The satellites that the receiver reports; nil = it has not.
    var satellites: SatelliteView? { get }
    /// The antenna as the receiver reports it; nil = it has not.
    var antenna: AntennaState? { get }
    /// What is known of the receiver's dates.
    var dates: ReceiverDates { get }
    /// The host's clock, with which dates are compared; nil = it is not synchronised.
    func hostTimeRead(_ time: HostTime?)
    /// A problem besides the state, for people; nil = nothing.
    var remark: String? { get }
    /// That much of what arrives is part of no sentence, with cause and cure, for people; nil = little.
    var stray: String? { get }
    /// What bytes that are no sentences come from, and what to do, for people.
    var strayCause: String { get }
    /// What is wrong while bytes come and no sentence, and what helps.
    var unreadableWords: String { get }
    /// What to look at where nothing arrives, in words for people; nil = nothing is known.
    var silenceCause: String? { get }
    /// Makes the next attempt now: what was missing may be there.
    func retryNow(at now: EventTime)
    /// A device was added, removed or changed; nil = events were lost, so it may be any.
    func deviceChanged(_ event: DeviceEvent?, at now: EventTime, _ deliver: (SourceEvent) -> Void)
    func close()
}

/// Defaults for a source that takes no commands and has no device.
extension FixSource {
    package var awaitsWritability: Bool { false }
    /// A live source is read while paused too: bytes that are not read are lost.
    package func setPaused(_ paused: Bool, at now: EventTime) {}
    package var rate: ReceiverRate? { nil }
    package var satellites: SatelliteView? { nil }
    package var antenna: AntennaState? { nil }
    package var dates: ReceiverDates { ReceiverDates() }
    /// A log is not of now.
    package func hostTimeRead(_ time: HostTime?) {}
    package var remark: String? { nil }
    package var stray: String? { nil }
    package var strayCause: String { StrayCause.serial }
    package var unreadableWords: String { StrayCause.unreadable(strayCause) }
    package var silenceCause: String? { nil }
    package func setInterval(_ interval: Duration, at now: EventTime, _ deliver: (SourceEvent) -> Void) {}
    package func retryNow(at now: EventTime) {}
    package func deviceChanged(_ event: DeviceEvent?, at now: EventTime, _ deliver: (SourceEvent) -> Void) {}

    /// Delivers the events of a call at its end: the loop may call back into the source from there.
    func act(_ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void) {
        var events: [SourceEvent] = []
        body(&events)
        for event in events { deliver(event) }
    }
}
