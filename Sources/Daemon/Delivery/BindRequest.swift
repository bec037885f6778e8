import Delivery
import Network
import Profiles
import Protocols
import WaypostCore
import WaypostHost

/// A request to the server to bind the asset to this device, for which an operator waits.
final class BindRequest {
    /// Covers the attempt before it, the request itself and a renewed credential.
    static let limit = ControlTicket.timeout
    /// Short, since a person waits for the answer.
    private static let timeout = Duration.seconds(15)

    /// Takes what went wrong, for people; nil = bound.
    let done: (String?) -> Void
    let alarm: EventLoop.Alarm
    /// With another credential.
    private var isRepeated = false

    /// - Parameter late: the operator has waited long enough.
    init(on loop: EventLoop, at now: EventTime, done: @escaping (String?) -> Void, late: @escaping () -> Void) {
        self.done = done
        alarm = loop.alarm { _ in late() }
        alarm.deadline = now + Self.limit
    }

    func send(_ attempt: Attempt, over route: EndpointDelivery.Route, by delivery: EndpointDelivery) {
        let loop = delivery.loop
        route.credentials.obtain(at: loop.now) { [self, unowned delivery] result in
            guard delivery.receives(attempt) else { return }
            do throws(CredentialProblem) {
                let context = RenderContext(identify: RecordID.make, secrets: try result.get(), gzip: false)
                guard var request = RequestRenderer(route.settings, in: context).bindRequest() else {
                    return delivery.endBinding(nil)
                }
                request.timeout = min(request.timeout, Self.timeout)
                try route.credentials.complete(&request, batchID: "\(route.settings.name)-bind", at: loop.now)
                delivery.send(request, of: attempt) { [self, unowned delivery] outcome in
                    answered(outcome, attempt, over: route, by: delivery)
                }
            } catch {
                delivery.bindRefused(error.message)
            }
        }
    }

    private func answered(
        _ outcome: UplinkOutcome, _ attempt: Attempt, over route: EndpointDelivery.Route, by delivery: EndpointDelivery
    ) {
        guard case .reply(let reply) = outcome.result else {
            if case .failed(let failure) = outcome.result {
                let cure = UploadProblem.cure(
                    outcome, route.settings, credential: route.credentials.refusal.cure)
                delivery.bindRefused(UploadProblem.words(failure.message, cure))
            }
            return
        }
        let mayAskAgain = delivery.bindAnswered(asked: RetryAfter.parse(reply.headers))
        switch reply.status {
        case 200..<300:
            guard let doubt = AnswerJudge(route.settings).doubt(about: reply) else { return delivery.endBinding(nil) }
            delivery.bindRefused(UploadProblem.words(.retry(doubt, after: nil), outcome).text)
        case 401, 407:
            guard mayAskAgain, !isRepeated else { return delivery.bindRefused("status \(reply.status)") }
            isRepeated = true
            route.credentials.refresh(at: delivery.loop.now) { [self, unowned delivery] renewal in
                guard delivery.receives(attempt) else { return }
                guard renewal == .new else {
                    let refusal = route.credentials.refusal
                    return delivery.bindRefused(
                        UploadProblem.words("status \(reply.status), \(refusal.words)", refusal.cure))
                }
                send(attempt, over: route, by: delivery)
            }
        default:
            let said = "status \(reply.status)" + UploadProblem.said(reply.status, reply.body)
            let cure = UploadProblem.cure(outcome, route.settings, credential: route.credentials.refusal.cure)
            delivery.bindRefused(UploadProblem.words(said, cure))
        }
    }
}
