import Delivery
import EventLoop
import Positioning
import Uplink

/// The HTTP uplink on the event loop: watches the descriptors that it names and keeps its deadline armed.
package final class LoopedUplink: Uplink {
    private let loop: EventLoop
    private let http: HTTPUplink
    private let alarm: EventLoop.Alarm

    var counters: HTTPUplink.Counters { http.counters }

    /// - Throws: `HTTPUplink.SetupError`
    package init(settings: HTTPUplink.Settings, loop: EventLoop) throws(HTTPUplink.SetupError) {
        let link = Link()
        self.loop = loop
        http = try HTTPUplink(settings: settings, isClockTrusted: { [host = loop.host] in host.isClockSynchronised }) {
            descriptor, interest in
            guard let interest else { return loop.forget(descriptor) }
            // A descriptor that cannot be watched shows as a request that times out; nothing is lost.
            try? loop.watch(descriptor, readable: interest.readable, writable: interest.writable) {
                link.uplink?.ready(descriptor, $0, at: $1)
            }
        }
        alarm = loop.alarm { link.uplink?.due(at: $0) }
        link.uplink = self
    }

    /// What the closures that are made before the uplink reach it by.
    private final class Link {
        weak var uplink: LoopedUplink?
    }

    @discardableResult
    package func send(_ request: UplinkRequest, completion: @escaping (UplinkOutcome) -> Void) -> UplinkTransfer {
        defer { arm() }
        return http.send(request, completion: completion)
    }

    package func cancel(_ transfer: UplinkTransfer) {
        http.cancel(transfer)
        arm()
    }

    package func closeIdleConnections(at now: EventTime) {
        http.closeIdleConnections(at: now)
        arm()
    }

    package func close() {
        alarm.deadline = nil
        http.close()
    }

    private func ready(_ descriptor: Int32, _ readiness: EventLoop.Readiness, at now: EventTime) {
        http.descriptorReady(descriptor, readable: readiness.readable, writable: readiness.writable, at: now)
        arm()
    }

    private func due(at now: EventTime) {
        http.deadlineReached(at: now)
        arm()
    }

    private func arm() { alarm.deadline = http.nextDeadline }
}
