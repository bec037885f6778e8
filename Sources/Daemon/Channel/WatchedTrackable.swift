import Channel
import WaypostCore
import WaypostTracking

/// A trackable on a live channel: what viewers see of it, and what they can expect.
struct WatchedTrackable {
    var enhanced: LiveStream
    /// What the receiver said; nil = viewers are not shown that.
    var raw: LiveStream?
    var resolution: Resolution?
    var state = TrackableState.offline
    var error: ChannelError?
    /// Chooses among the fixes of the receiver, as the reference does, whatever rule the history has.
    private var sampler = LocationSampler(settings: LocationSampler.Settings())

    /// - Parameters:
    ///   - queue: names the queue.
    ///   - seen: what viewers saw last; nil = nothing.
    ///   - seenAt: about when.
    init(queue: String, hasRaw: Bool, seen: ChannelFeature?, at seenAt: EventTime) {
        enhanced = LiveStream(
            LocationFeed(
                queue: queue, name: .enhanced, cursor: seen.cursor, lastKnown: seen,
                lastPublished: seen == nil ? nil : seenAt))
        if hasRaw { raw = LiveStream(LocationFeed(queue: queue, name: .raw, cursor: 0)) }
    }

    subscript(name: ChannelMessage.Name) -> LiveStream? {
        get { name == .enhanced ? enhanced : raw }
        set {
            switch name {
            case .enhanced: if let newValue { enhanced = newValue }
            case .raw: raw = newValue
            }
        }
    }

    var feedDeadlines: [EventTime] { [enhanced.feed.nextDeadline, raw?.feed.nextDeadline].compactMap { $0 } }

    mutating func viewerArrived(at now: EventTime) {
        enhanced.feed.viewerArrived(at: now)
        raw?.feed.viewerArrived(at: now)
    }

    /// Nothing of it was filtered, and it was not held in place.
    mutating func add(_ fix: Fix, time: UTCTime) {
        let sampled = LocationSampler.Selected(time: time, coordinate: fix.coordinate)
        let isSelected = sampler.sample(sampled, at: fix.at, resolution: resolution) != nil
        raw?.add(
            Location(
                trackable: nil, time: time, at: fix.at, coordinate: fix.coordinate, altitudeMSL: fix.altitudeMSL,
                altitudeHAE: fix.altitudeHAE, horizontalAccuracy: fix.horizontalAccuracy, speed: fix.speed,
                course: fix.course, hdop: fix.hdop, moving: true, published: isSelected))
    }
}

extension ChannelFeature? {
    /// Rows up to it have been seen.
    fileprivate var cursor: Int64 { self?.time.milliseconds ?? 0 }
}
