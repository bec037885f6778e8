/// Whose time goes into a signature.
package enum SigningClock: String, Hashable, Sendable, CaseIterable {
    /// The host's, once it is known to be right.
    case host
    /// The same, and until then the receiver's.
    case receiver

    /// Maximum difference between host and receiver at which they confirm each other, in milliseconds. Servers of signed
    /// requests allow five minutes and more.
    package static let agreementMs: Int64 = 60_000

    /// - Parameters:
    ///   - hostMs: wall clock, Unix milliseconds.
    ///   - isSynchronised: the kernel or a time service says that the wall clock follows a reference.
    ///   - receiverMs: newest time of the receiver plus what has passed since, Unix milliseconds; nil = unknown.
    /// - Returns: Unix milliseconds; nil = the time is not known.
    package func time(hostMs: Int64, isSynchronised: Bool, receiverMs: Int64?) -> Int64? {
        if isSynchronised { return hostMs }
        guard let receiverMs else { return nil }
        let (difference, overflow) = hostMs.subtractingReportingOverflow(receiverMs)
        if !overflow, difference.magnitude <= UInt64(Self.agreementMs) { return hostMs }
        return self == .receiver ? receiverMs : nil
    }
}
