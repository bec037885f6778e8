import WaypostCore

/// How long the steps to a connection may take, and which addresses are asked for, as earlier attempts over this link have shown.
struct ConnectMemory: Hashable {
    /// A resolver that drops the question for IPv6 addresses holds each lookup up by two or three of its timeouts, of 5 s each.
    private static let slowLookup = Duration.milliseconds(4500)
    private static let factor = 3

    /// A step has taken longer than it usually may.
    private var isSlow = false
    /// Only IPv4 addresses are asked for.
    private(set) var isIPv4Alone = false
    private var hasTriedIPv4 = false
    /// Connections use short packets: long ones may be lost without a word, as behind a tunnel whose routers send no ICMP.
    private(set) var isShort = false

    /// IPv4 is as good over another link as long as that has it, and a vehicle may come back to the resolver that drops questions.
    func overAnotherLink(hasIPv4: Bool) -> ConnectMemory {
        var memory = ConnectMemory()
        (memory.isIPv4Alone, memory.hasTriedIPv4) = (isIPv4Alone && hasIPv4, isIPv4Alone && hasIPv4)
        return memory
    }

    func limit(_ usual: Duration) -> Duration { isSlow ? usual * Self.factor : usual }

    /// The lookup of the name has come to an end after so long, or was given up.
    ///
    /// - Parameter hasIPv4: there is a route for it.
    mutating func lookedUp(in duration: Duration, hasIPv4: Bool) {
        guard hasIPv4, duration >= Self.slowLookup, !hasTriedIPv4 else { return }
        (isIPv4Alone, hasTriedIPv4) = (true, true)
    }

    /// The connection or its encryption took too long.
    mutating func missed() { isSlow = true }

    /// Nothing of a request was acknowledged, or nothing came of a handshake, over a connection that was made: that of short packets
    /// comes through, if it is for their length.
    mutating func tookNothing() { isShort.toggle() }

    /// The name has no such address, as the resolver said after so long: what takes longer is silence, and no answer.
    mutating func failedToLookUp(in duration: Duration) {
        if duration < Self.slowLookup { isIPv4Alone = false }
    }
}
