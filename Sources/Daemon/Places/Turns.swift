/// Lets only a few at a time do something that takes much memory. The others wait in the order in which they came.
final class Turns {
    private struct Holder {
        var owner: ObjectIdentifier
        var awaited: () -> Void
    }

    private struct Waiter {
        var holder: Holder
        var start: () -> Void
    }

    private let places: Int
    /// The one that has waited least for its end comes last.
    private var holders: [Holder] = []
    private var waiting: [Waiter] = []

    /// - Parameter places: how many may have a turn at once.
    init(places: Int = 1) { self.places = places }

    /// Somebody waits for a turn.
    var isAwaited: Bool { !waiting.isEmpty }

    /// - Parameters:
    ///   - isPutBack: it gave up its turn for others: it asks none of the holders to do the same.
    ///   - awaited: called when another one begins to wait while `owner` has a turn, which it may give up then.
    ///   - start: called once there is a turn; at once if there is one, or if `owner` has one.
    func take(
        _ owner: AnyObject, isPutBack: Bool = false, awaited: @escaping () -> Void = {}, _ start: @escaping () -> Void
    ) {
        let owner = ObjectIdentifier(owner)
        if holders.contains(where: { $0.owner == owner }) { return start() }
        let holder = Holder(owner: owner, awaited: awaited)
        guard holders.count == places else {
            holders.append(holder)
            return start()
        }
        waiting.append(Waiter(holder: holder, start: start))
        if isPutBack { return }
        for other in holders where waiting.contains(where: { $0.holder.owner == owner }) { other.awaited() }
    }

    /// Gives the turn back, or waits for it no longer.
    func leave(_ owner: AnyObject) {
        let owner = ObjectIdentifier(owner)
        waiting.removeAll { $0.holder.owner == owner }
        guard let index = holders.firstIndex(where: { $0.owner == owner }) else { return }
        holders.remove(at: index)
        guard !waiting.isEmpty else { return }
        let next = waiting.removeFirst()
        holders.append(next.holder)
        next.start()
    }
}

/// The turns of all lists of servers, so that together they take no more memory than one long list and a few short ones.
struct ListTurns {
    /// Of a list that is long, from its request until it is in force. A short one waits for none.
    let long = Turns()
    /// Of the others, in the same way.
    let short = Turns(places: 8)
    /// Of the reading of any list, which no server can delay.
    let reading = Turns()
}
