import WaypostCore
import WaypostTracking

/// The subscribers of a trackable, from the presence on its channel.
struct Viewers: Sendable {
    private let trackable: String
    private(set) var map = PresenceMap()
    /// What the resolution board knows: by member, what it asks for.
    private var announced: [String: Resolution?] = [:]
    /// The connection was away for so long that whoever was there may be gone: nobody is announced until the service
    /// has told who is.
    private var isForgotten = false
    /// Something has happened since the changes were taken.
    private var isStale = false

    init(trackable: String) { self.trackable = trackable }

    mutating func forget() {
        isForgotten = true
        isStale = true
    }

    /// - Parameter hasPresence: the service is about to tell who is there; else nobody is.
    mutating func attached(hasPresence: Bool) {
        isStale = true
        if hasPresence {
            map.synchronizationBegan()
        } else {
            map.removeAll()
            isForgotten = false
        }
    }

    mutating func synchronizationEnded() {
        guard map.isSynchronizing else { return }
        isStale = true
        map.synchronizationEnded()
        isForgotten = false
    }

    mutating func removeAll() {
        map.removeAll()
        isStale = true
    }

    /// - Returns: false when there are too many members.
    mutating func received(_ item: PresenceItem) -> Bool {
        isStale = true
        return map.received(item)
    }

    /// What has changed since the last call, in the order of the member keys.
    mutating func takeChanges() -> [SubscriberChange] {
        guard isStale else { return [] }
        isStale = false
        let present = isForgotten ? [:] : map.present.compactMapValues(Self.request)
        var changes: [SubscriberChange] = []
        for key in announced.keys.filter({ present[$0] == nil }).sorted() {
            changes.append(SubscriberChange(trackable: trackable, member: key, action: .remove))
        }
        for (key, request) in present.sorted(by: { $0.key < $1.key }) where announced[key] != request.resolution {
            let action: SubscriberChange.Action =
                announced.keys.contains(key) ? .update(request.resolution) : .add(request.resolution)
            changes.append(SubscriberChange(trackable: trackable, member: key, action: action))
        }
        announced = present.mapValues(\.resolution)
        return changes
    }

    private struct Request {
        var resolution: Resolution?
    }

    private static func request(of item: PresenceItem) -> Request? {
        guard case .subscriber(let resolution, _) = item.data else { return nil }
        return Request(resolution: resolution)
    }
}
