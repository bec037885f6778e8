import WaypostCore
import WaypostHost

/// The real descriptors on a clock of its own, which stands while something happens and leaps to the next deadline when
/// nothing does: minutes pass in no time.
final class LeapingHost: Host {
    private let real: LinuxHost
    private let isBusy: (Set<Int32>) -> Bool
    private var watched: Set<Int32> = []
    private(set) var bootTime = EventTime(nanoseconds: 1_000_000_000_000)

    /// - Parameter isBusy: whether one of the descriptors that are watched will certainly become ready, so that it is waited
    ///   for.
    init(isBusy: @escaping (Set<Int32>) -> Bool = { _ in false }) throws(SystemError) {
        real = try LinuxHost()
        self.isBusy = isBusy
    }

    var wallClockMs: Int64 { 1_700_000_000_000 }
    var isClockSynchronised: Bool { true }
    var jitter: Double { 0.5 }
    func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] { [UInt8](repeating: 7, count: count) }
    func egressRoute(to peer: String?) -> EgressRoute? { nil }
    func arrange(_ due: inout [EventLoop.Alarm]) {}

    func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError) {
        try real.watch(descriptor, readable: readable, writable: writable, isKnown: isKnown)
        watched.insert(descriptor)
    }

    func forget(_ descriptor: Int32) {
        watched.remove(descriptor)
        real.forget(descriptor)
    }

    func poll() throws(SystemError) -> ReadyDescriptor? { try real.poll() }

    func wait(until deadline: EventTime?) throws(SystemError) -> ReadyDescriptor? {
        guard let deadline, !isBusy(watched) else { return try real.wait(until: nil) }
        bootTime = max(bootTime, deadline)
        return nil
    }
}
