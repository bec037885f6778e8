import Configuration
import Places
import WaypostCore

/// How a fetch ended.
enum FetchEnding: Equatable {
    /// The list in force is the one of the server.
    case unchanged
    /// It is in force now.
    case taken
    /// Why it is not known whether the list in force is still the one.
    case failed(String)
}

/// A server's list, whatever it lists, for those who show it or ask for it.
protocol FetchedSource: AnyObject {
    var config: ListSourceConfig { get }
    var schedule: FetchSchedule { get }
    /// Items of the list in force; nil = there is none.
    var count: Int? { get }
    /// The last failure, until a fetch succeeds.
    var problem: String? { get }

    /// Seconds since the server gave the list or confirmed it; nil where there is no list or the time is not known.
    func age(at now: EventTime) -> Double?

    /// - Parameter done: called once the server has answered, unless the source is closed before.
    /// - Returns: for how long the server's wish for a pause delays it; nil = it does not.
    @discardableResult
    func refresh(at now: EventTime, _ done: ((FetchEnding) -> Void)?) -> Duration?
}

extension FetchedSource {
    @discardableResult
    func refresh(at now: EventTime) -> Duration? { refresh(at: now, nil) }
}
