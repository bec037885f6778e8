import Channel
import WaypostControl
import WaypostCore

// Who watches, and what they ask for.
extension StatusReport {
    private static let channelsMax = 8
    private static let watchedMax = 20
    private static let requestsMax = 8

    /// nil = there is none.
    var channelStatus: [ChannelStatus]? {
        channels.isEmpty ? nil : channels.prefix(Self.channelsMax).map(Self.status)
    }

    static func problems(of channel: ChannelDelivery) -> [String] {
        channel.problems.map { "\(channel.config.endpoint.settings.name): \($0)" }
    }

    private static func status(of channel: ChannelDelivery) -> ChannelStatus {
        var status = ChannelStatus()
        status.name = channel.config.endpoint.settings.name
        status.state = channel.isByRequests ? "by-requests" : channel.state.rawValue
        status.problem = channel.reason.map(shortened)
        status.published = channel.published
        let trackables = channel.trackables
        status.unreadFrames = channel.unreadFrames
        status.ignoredMembers = channel.ignoredMembers
        status.passed = trackables.reduce(0) { $0 + channel.passed($1.id) }
        status.unfit = trackables.reduce(0) { $0 + channel.unfit($1.id) }
        status.trackables = Named(
            trackables.prefix(watchedMax).map { id, state, error in
                var watched = WatchedStatus()
                watched.state = state.rawValue
                watched.problem = error.map { shortened($0.message) }
                let viewers = channel.viewers.of(id)
                watched.viewers = viewers.count
                let requests = viewers.compactMap { viewer in viewer.request.map { (viewer.member, $0) } }
                watched.requests = Named(
                    requests.prefix(requestsMax).map { ($0.visible(bytesMax: 64), $1.value) })
                return (id, watched)
            })
        return status
    }
}
