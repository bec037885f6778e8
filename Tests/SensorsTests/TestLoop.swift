import Glibc
import TestSupport
import Testing
import WaypostCore
import WaypostNMEA

@testable import Sensors

/// The event loop of a test: the kernel delivers in real time, deadlines come when the test says so.
final class TestLoop {
    let source: any FixSource
    /// The boot clock of the test.
    var now = EventTime(nanoseconds: 1_000_000_000_000)
    private(set) var events: [SourceEvent] = []
    /// Calls that a real loop would have been woken for.
    private(set) var wakeUps = 0
    /// Called for each event as the source delivers it.
    var onEvent: (SourceEvent) -> Void = { _ in }

    init(_ source: any FixSource) { self.source = source }

    func start() { source.start(at: now, take) }

    /// Waits for the descriptor of the source, at most 5 s; false when nothing came or nothing is watched.
    @discardableResult func awaitInput(milliseconds: Int32 = 5000) -> Bool {
        guard let fd = source.descriptor else { return false }
        let wanted = Int16(source.awaitsWritability ? POLLOUT : POLLIN)
        var ready = pollfd(fd: fd, events: wanted, revents: 0)
        guard poll(&ready, 1, milliseconds) == 1 else { return false }
        wakeUps += 1
        source.descriptorReady(at: now, take)
        return true
    }

    /// Lets the time pass, meeting every deadline on the way. Input that is there is read first, as the loop does.
    func pass(_ duration: Duration) {
        let end = now + duration
        while let deadline = source.nextDeadline, deadline <= end {
            now = max(now, deadline)
            wakeUps += 1
            source.deadlineReached(at: now, take)
        }
        now = end
    }

    /// Turns the loop until the condition holds; false when it still does not after many turns.
    @discardableResult func run(until condition: () -> Bool) -> Bool {
        for _ in 0..<10_000 {
            if condition() { return true }
            // Another process or thread may be about to send: time jumps only when it has had a real chance.
            let isDue = source.nextDeadline.map { $0 <= now } ?? false
            if awaitInput(milliseconds: isDue ? 0 : source.nextDeadline == nil ? 5000 : 200) { continue }
            guard let deadline = source.nextDeadline else { return condition() }
            now = max(now, deadline)
            wakeUps += 1
            source.deadlineReached(at: now, take)
        }
        return condition()
    }

    /// The same where the condition must hold in the end.
    func reach(sourceLocation: SourceLocation = #_sourceLocation, _ condition: () -> Bool) {
        if !run(until: condition) { Issue.record("it never came to that: \(states)", sourceLocation: sourceLocation) }
    }

    /// Waits for input that must come.
    func takeInput(milliseconds: Int32 = 5000, sourceLocation: SourceLocation = #_sourceLocation) {
        if !awaitInput(milliseconds: milliseconds) {
            Issue.record("nothing came: \(states)", sourceLocation: sourceLocation)
        }
    }

    func setAsleep(_ asleep: Bool, for duration: Duration? = nil) -> Bool {
        source.setAsleep(asleep, until: duration.map { now + $0 }, at: now, take)
    }

    func setInterval(_ interval: Duration) { source.setInterval(interval, at: now, take) }

    func deviceChanged(_ event: DeviceEvent?) { source.deviceChanged(event, at: now, take) }

    var notices: [String] { events.compactMap { if case .notice(let text) = $0 { text } else { nil } } }

    func forget() {
        events = []
        wakeUps = 0
    }

    var states: [SourceState] {
        events.compactMap { if case .stateChanged(let state) = $0 { state } else { nil } }
    }

    var fixes: [Fix] {
        events.compactMap { if case .epoch(.fix(let fix), _, _) = $0 { fix } else { nil } }
    }

    /// Seconds of the day of each fix.
    var seconds: [Int] { fixes.map { $0.timeOfDay / 1000 } }

    var positions: [FilePosition] {
        events.compactMap { if case .epoch(_, _, let position?) = $0 { position } else { nil } }
    }

    var clocks: [SourceClock] {
        events.compactMap { if case .epoch(_, let clock, _) = $0 { clock } else { nil } }
    }

    var lossReason: String? {
        for case .lost(let reason) in states.reversed() { return reason }
        return nil
    }

    private func take(_ event: SourceEvent) {
        events.append(event)
        onEvent(event)
    }
}

/// Sentences of a receiver at one measurement a second on 2026-05-04.
enum Receiver {
    static func sentence(_ body: String) -> String {
        let checksum = body.utf8.reduce(0, ^)
        let hex = String(checksum, radix: 16, uppercase: true)
        return "$\(body)*\(hex.count < 2 ? "0" : "")\(hex)\r\n"
    }

    static func rmc(milliseconds time: Int) -> String {
        sentence("GPRMC,\(clock(time)),A,4807.038,N,01131.000,E,010.0,084.4,040526,,,A")
    }

    static func gga(milliseconds time: Int) -> String {
        sentence("GPGGA,\(clock(time)),4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,")
    }

    static func epoch(milliseconds time: Int) -> String { rmc(milliseconds: time) + gga(milliseconds: time) }

    static func rmc(_ second: Int) -> String { rmc(milliseconds: second * 1000) }

    static func gga(_ second: Int) -> String { gga(milliseconds: second * 1000) }

    static func epoch(_ second: Int) -> String { epoch(milliseconds: second * 1000) }

    static func log(_ seconds: Range<Int>) -> String { seconds.map { epoch($0) }.joined() }

    /// `hhmmss.ss`
    private static func clock(_ milliseconds: Int) -> String {
        let digits = { (value: Int) in value < 10 ? "0\(value)" : String(value) }
        let second = milliseconds / 1000
        let parts = [second / 3600, second / 60 % 60, second % 60].map(digits).joined()
        return "\(parts).\(digits(milliseconds % 1000 / 10))"
    }
}

/// A folder of its own for each test.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = try makeTemporaryDirectory()
    }

    deinit {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                unlink("\(path)/\(name)")
            }
            closedir(folder)
        }
        rmdir(path)
    }

    func path(_ name: String) -> String { "\(path)/\(name)" }

    @discardableResult func write(_ text: String, to name: String) throws -> String {
        try put(text, name, O_CREAT | O_TRUNC)
    }

    @discardableResult func append(_ text: String, to name: String) throws -> String {
        try put(text, name, O_CREAT | O_APPEND)
    }

    private func put(_ text: String, _ name: String, _ flags: Int32) throws -> String {
        let fd = open(path(name), O_WRONLY | flags, 0o600)
        try #require(fd >= 0)
        defer { close(fd) }
        try writeAll(text, to: fd)
        return path(name)
    }
}

func writeAll(_ text: String, to fd: Int32) throws {
    let bytes = Array(text.utf8)
    var done = 0
    while done < bytes.count {
        let count = bytes[done...].withUnsafeBytes { write(fd, $0.baseAddress, $0.count) }
        try #require(count > 0)
        done += count
    }
}
