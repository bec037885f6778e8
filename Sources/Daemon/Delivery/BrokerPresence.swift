import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// What a broker gets beside the rows: the connection on which others see that this device is there, and single messages.
final class BrokerPresence {
    private let uplink: any Uplink
    private let loop: EventLoop
    /// Before it no connection is made that has nothing to carry.
    private var start = EventTime.zero
    private var alarm: EventLoop.Alarm?
    /// The start has come, and a connection was wanted before it.
    var started: () -> Void = {}
    var answered: (UplinkOutcome) -> Void = { _ in }

    init(uplink: any Uplink, loop: EventLoop) {
        self.uplink = uplink
        self.loop = loop
        alarm = loop.alarm { [unowned self] _ in started() }
    }

    func postpone(to start: EventTime) { self.start = start }

    var hasStarted: Bool { start <= loop.now }

    func connect(over route: EndpointDelivery.Route) {
        if hasStarted { publish([], over: route) { _ in } } else { alarm?.deadline = start }
    }

    /// - Parameter done: called once; not at all where there is nothing to connect to, or no connection stays open.
    func publish(
        _ messages: [MQTTMessage], over route: EndpointDelivery.Route,
        _ done: @escaping (UplinkOutcome.Result) -> Void
    ) {
        route.credentials.obtain(at: loop.now) { [unowned self] result in
            do throws(CredentialProblem) {
                let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                guard var request = RequestRenderer(route.settings, in: context).connectRequest() else { return }
                try route.credentials.complete(&request, batchID: "", at: loop.now)
                guard let session = request.broker?.session, session.staysOpen || !messages.isEmpty else { return }
                request.broker?.messages = BrokerMessages(count: messages.count) { messages[$0] }
                uplink.send(request) { [unowned self] outcome in
                    answered(outcome)
                    done(outcome.result)
                }
            } catch { done(.failed(.broken(error.message))) }
        }
    }
}
