/// Lets one at a time do what takes much memory. The others wait in the order in which they came.
final class Turns {
    private var holder: ObjectIdentifier?
    private var waiting: [(owner: ObjectIdentifier, start: () -> Void)] = []

    /// - Parameter start: called once the turn is free; at once if it is, or if `owner` has it.
    func take(_ owner: AnyObject, _ start: @escaping () -> Void) {
        let owner = ObjectIdentifier(owner)
        guard holder == nil || holder == owner else { return waiting.append((owner, start)) }
        holder = owner
        start()
    }

    /// Gives the turn back, or waits for it no longer.
    func leave(_ owner: AnyObject) {
        let owner = ObjectIdentifier(owner)
        waiting.removeAll { $0.owner == owner }
        guard holder == owner else { return }
        holder = nil
        guard !waiting.isEmpty else { return }
        let next = waiting.removeFirst()
        holder = next.owner
        next.start()
    }
}

/// The turns of all lists of servers, so that together they take no more memory than one of them.
struct ListTurns {
    /// Of a list that is long, from its request until it is in force. A short one waits for none.
    let long = Turns()
    /// Of the reading of any list, which no server can delay.
    let reading = Turns()
}
