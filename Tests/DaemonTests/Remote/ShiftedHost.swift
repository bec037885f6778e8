import WaypostCore
import WaypostHost

/// The real machine with a clock that the test puts forward, and a route that it takes away.
final class ShiftedHost: Host {
    private let real: LinuxHost
    private var shift = Duration.zero
    var route: EgressRoute?

    init() throws(SystemError) {
        real = try LinuxHost()
        route = real.egressRoute(to: "127.0.0.1")
    }

    func pass(_ duration: Duration) { shift += duration }

    var bootTime: EventTime { real.bootTime + shift }
    var wallClockMs: Int64 = 1_700_000_000_000
    var isClockSynchronised = false
    /// Late enough that nothing but an answer brings a document.
    var jitter: Double { 0.99 }
    func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] { [UInt8](repeating: 7, count: count) }
    func egressRoute(to peer: String?) -> EgressRoute? { route }
    func arrange(_ due: inout [EventLoop.Alarm]) {}

    func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError) {
        try real.watch(descriptor, readable: readable, writable: writable, isKnown: isKnown)
    }

    func forget(_ descriptor: Int32) { real.forget(descriptor) }
    func poll() throws(SystemError) -> ReadyDescriptor? { try real.poll() }
    func wait(until deadline: EventTime?) throws(SystemError) -> ReadyDescriptor? {
        try real.wait(until: deadline.map { $0 - shift })
    }
}
