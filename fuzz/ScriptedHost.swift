@testable import WaypostCore
@testable import WaypostHost

/// The host of this machine with a clock that the script moves.
final class ScriptedHost: Host {
    private let linux: LinuxHost
    var bootTime = EventTime(nanoseconds: 1_000_000_000)
    /// A turn of the loop begins.
    var turn: () -> Void = {}

    init() throws(SystemError) { linux = try LinuxHost() }

    var wallClockMs: Int64 { 0 }
    var isClockSynchronised: Bool { false }
    var jitter: Double { 0.5 }
    func randomBytes(_ count: Int) throws(SystemError) -> [UInt8] { [UInt8](repeating: 0, count: count) }
    func egressRoute(to peer: String?) -> EgressRoute? { nil }
    func watch(_ descriptor: Int32, readable: Bool, writable: Bool, isKnown: Bool) throws(SystemError) {
        try linux.watch(descriptor, readable: readable, writable: writable, isKnown: isKnown)
    }
    func forget(_ descriptor: Int32) { linux.forget(descriptor) }
    func arrange(_ due: inout [EventLoop.Alarm]) {}

    func poll() throws(SystemError) -> ReadyDescriptor? {
        turn()
        return try linux.poll()
    }

    func wait(until deadline: EventTime?) throws(SystemError) -> ReadyDescriptor? { try poll() }
}
