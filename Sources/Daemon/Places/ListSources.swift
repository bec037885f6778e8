import Configuration
import Places
import Protocols
import WaypostCore
import WaypostHost

/// What is in force of one kind, such as geofences: what the configuration lists, and what servers list.
final class ListSources<Source: ListSource> {
    typealias Item = Source.Item

    private var lists: JoinedLists<Item>
    private var configs: [Source]
    private(set) var fetched: [FetchedList<Item>] = []
    private let make: (Source, FetchedList<Item>?) -> FetchedList<Item>
    private let log: AgentLog
    private let loop: EventLoop
    /// A server gave another list: these are all of them now.
    var itemsChanged: ([Item], EventTime) -> Void = { _, _ in }
    var changed: () -> Void = {}

    /// Reads the lists that are kept.
    /// - Parameter own: of the configuration, and of files that it names.
    init(
        _ configs: [Source], own: [Item], directory: String, uplink: any Uplink, log: AgentLog,
        loop: EventLoop, turns: ListTurns = ListTurns(),
        makeCredentials: @escaping (EndpointConfig) -> EndpointCredentials
    ) {
        self.configs = configs
        (self.log, self.loop) = (log, loop)
        lists = JoinedLists(own: own, sources: configs.map(\.name))
        make = { config, earlier in
            FetchedList(
                config.list, directory: directory, after: earlier, uplink: uplink, log: log, loop: loop,
                turns: turns, makeCredentials: makeCredentials, read: config.items)
        }
        for config in configs {
            let list = open(config)
            fetched.append(list)
            if let kept = list.readKept() { useKept(kept, list) }
        }
    }

    /// All of them.
    var joined: [Item] { lists.joined }

    /// - Parameter earlier: the same source before a reload, which is closed.
    private func open(_ config: Source, after earlier: FetchedList<Item>? = nil) -> FetchedList<Item> {
        let list = make(config, earlier)
        list.check = { [unowned self] items in lists.problem(with: items, of: config.name) }
        list.adopt = { [unowned self] items, now in adopt(items, of: config.list, at: now) }
        list.changed = { [unowned self] in changed() }
        return list
    }

    private func useKept(_ items: [Item], _ list: FetchedList<Item>) {
        do throws(ListProblems) {
            _ = try lists.received(items, of: list.config.name)
        } catch {
            log.keptListUnusable(list.config.label, error.description.visible(bytesMax: 300))
            list.forget()
        }
    }

    /// - Returns: that there are too many by now: others may have come while they were written.
    private func adopt(_ items: [Item], of config: ListSourceConfig, at now: EventTime) -> ListProblems? {
        do throws(ListProblems) {
            let change = try lists.received(items, of: config.name)
            log.listReceived(config.label, items.count, Item.noun, change)
            if !change.isEmpty { itemsChanged(lists.joined, now) }
            return nil
        } catch { return error }
    }

    // MARK: Times

    func start(sinceBoot: Bool, at now: EventTime) {
        for list in fetched { list.start(sinceBoot: sinceBoot, at: now) }
    }

    func linksChanged(at now: EventTime) { for list in fetched { list.linkChanged(at: now) } }

    func close() { for list in fetched { list.close() } }

    /// The configuration was read again: sources that are the same keep their lists, those that are gone take them along, and
    /// each server is asked again.
    ///
    /// - Returns: all items now.
    func reload(_ new: [Source], own: [Item], at now: EventTime) -> [Item] {
        let before = Dictionary(uniqueKeysWithValues: zip(configs, fetched).map { ($0.name, ($0, $1)) })
        let kept = Set(new.filter { before[$0.name]?.0.hasSameList(as: $0) ?? false }.map(\.name))
        let givenUp = lists.reloaded(own: own, sources: new.map(\.name), kept: kept)
        fetched = new.map { config in
            guard let (old, list) = before[config.name] else { return open(config) }
            if old == config {
                list.rereadSecrets()
                return list
            }
            list.close()
            let next = open(config, after: list)
            if kept.contains(config.name) { next.follow(list) }
            return next
        }
        configs = new
        for (name, (_, list)) in before where !new.contains(where: { $0.name == name }) { list.remove() }
        for list in fetched {
            if givenUp.contains(list.config.name) { list.forget() }
            list.refresh(at: now)
        }
        return lists.joined
    }
}
