import Configuration
import ControlProtocol
import Delivery
import EventLoop
import Places
import Positioning
import Tracking
import Uplink

/// The geofences in force: those of the configuration, and those that servers list.
final class FenceSources {
    private var lists: FenceLists
    private var configs: [FenceSourceConfig]
    private(set) var fetched: [FetchedList] = []
    private let make: (FenceSourceConfig, FetchedList?) -> FetchedList
    private let log: AgentLog
    private let loop: EventLoop
    /// A server gave another list: these are all fences now.
    var fencesChanged: ([Geofence], EventTime) -> Void = { _, _ in }
    var changed: () -> Void = {}

    /// Reads the lists that are kept.
    /// - Parameter own: of the configuration, and of the file that it names.
    init(
        _ configs: [FenceSourceConfig], own: [Geofence], directory: String, uplink: any Uplink, log: AgentLog,
        loop: EventLoop, makeCredentials: @escaping (EndpointConfig) -> EndpointCredentials
    ) {
        self.configs = configs
        (self.log, self.loop) = (log, loop)
        lists = FenceLists(own: own, sources: configs.map(\.name))
        make = {
            FetchedList(
                $0.list, directory: directory, bytesMax: FenceList.bytesMax, after: $1, uplink: uplink, log: log,
                loop: loop, makeCredentials: makeCredentials)
        }
        for config in configs {
            let list = open(config)
            fetched.append(list)
            readKept(list, config)
        }
    }

    /// All of them.
    var joined: [Geofence] { lists.joined }

    func count(of source: String) -> Int? { lists.count(of: source) }

    /// - Parameter earlier: the same source before a reload, which is closed.
    private func open(_ config: FenceSourceConfig, after earlier: FetchedList? = nil) -> FetchedList {
        let list = make(config, earlier)
        list.read = { [unowned self] reply in read(reply, config) }
        list.changed = { [unowned self] in changed() }
        return list
    }

    private func readKept(_ list: FetchedList, _ config: FenceSourceConfig) {
        guard let reply = list.readKept() else { return }
        do throws(ListProblems) {
            _ = try lists.received(FenceList.read(reply, config.form, source: config.name), of: config.name)
        } catch {
            log.keptListUnusable(config.list.label, error.description.visible(bytesMax: 300))
            list.forget()
        }
    }

    private func read(_ reply: [UInt8], _ config: FenceSourceConfig) -> FetchedList.Reading {
        do throws(ListProblems) {
            let fences = try FenceList.read(reply, config.form, source: config.name)
            var tried = lists
            _ = try tried.received(fences, of: config.name)
            return .success { [unowned self] now in adopt(fences, of: config.name, at: now) }
        } catch { return .failure(error) }
    }

    /// - Returns: that there are too many by now: others may have come while they were written.
    private func adopt(_ fences: [Geofence], of source: String, at now: EventTime) -> ListProblems? {
        do throws(ListProblems) {
            let change = try lists.received(fences, of: source)
            log.fencesReceived(source, fences.count, change)
            if !change.isEmpty { fencesChanged(lists.joined, now) }
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
    /// - Returns: all fences now.
    func reload(_ new: [FenceSourceConfig], own: [Geofence], at now: EventTime) -> [Geofence] {
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

extension FenceSourceConfig {
    /// It asks the same server for the same fences.
    fileprivate func hasSameList(as other: FenceSourceConfig) -> Bool {
        name == other.name && list.url == other.list.url && form == other.form
    }
}
