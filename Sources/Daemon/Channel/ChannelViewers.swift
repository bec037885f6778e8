import Channel
import WaypostCore
import WaypostTracking

/// The viewers of the trackables of a channel, and what they ask for, as `status` shows them.
struct ChannelViewers {
    /// By trackable and member.
    private var requests: [String: [String: Resolution?]] = [:]

    mutating func changed(_ change: SubscriberChange) {
        switch change.action {
        case .add(let request), .update(let request):
            requests[change.trackable, default: [:]].updateValue(request, forKey: change.member)
        case .remove: requests[change.trackable]?.removeValue(forKey: change.member)
        }
    }

    /// In the order of their names.
    func of(_ trackable: String) -> [(member: String, request: Resolution?)] {
        requests[trackable, default: [:]].sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
