/// Something worth a counter that changes nothing by itself.
public enum CountReason: Hashable, Sendable {
    /// A fix was not believed.
    case rejected(FixFilter.Rejection)
    /// Three implausible positions agreed among themselves: the asset is there now.
    case jump
    /// Ten older times rose among themselves: the receiver's clock is that now.
    case clockStep
    /// A panic without any dated fix has no position to record.
    case panicRefused
    /// A trackable has as many subscribers as it may have.
    case subscriberRefused
}
