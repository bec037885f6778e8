import Configuration
import Sensors
import WaypostCore
import WaypostHost

/// Watches battery and external power: on every event of the kernel, and by slow polling.
///
/// Many drivers send no event for a falling level, and without udevd there may be no events at all. The files are read beside
/// the loop, those of chargers first: the loss of power is reported while a slow gauge is still being read.
final class PowerWatch {
    struct Reading {
        var state: PowerState
        /// A battery was read, or went away. Otherwise another program may know of one, over the control socket, and a
        /// level that none has confirmed for long is forgotten.
        var hasBattery: Bool
        /// External power went away.
        var isLoss: Bool
    }

    /// Between two readings while all is well.
    static let slow = Duration.seconds(60)
    /// While the battery is low.
    static let fast = Duration.seconds(10)
    /// Events come in bursts, and before the last one the files may be empty.
    private static let settling = Duration.milliseconds(200)
    /// Some chargers send events without end.
    private static let between = Duration.seconds(1)
    /// A slow gauge takes half a second for each of ten files. One that takes longer is not waited for.
    private static let limit = Duration.seconds(10)

    struct Settings: Hashable {
        /// nil = nothing is read.
        var supplies: BatteryConfig.SupplySettings?
        /// Percent; nil = the level is never looked at more often.
        var low: Double?
    }

    private var settings: Settings
    private var survey: PowerSupplySurvey?
    /// Time between two calls of `loopWoke(at:)`; nil = there are none to rely on.
    private let wakeInterval: Duration?
    private let log: AgentLog
    private let loop: EventLoop
    private let changed: (Reading, EventTime) -> Void
    /// The next reading.
    private var alarm: EventLoop.Alarm?
    /// While one is under way: when to check which supply has not answered.
    private var checkAlarm: EventLoop.Alarm?
    /// When the last reading began.
    private var readAt: EventTime?
    private var isReading = false
    /// Of each in the folder what it said last, whether it counts or not.
    private var known: [String: PowerSupply] = [:]
    private var names: Set<String> = []
    /// Those that have been asked and do not answer. What they said last stays.
    private var silent: Set<String> = []
    /// Those that answered or went since the last report.
    private var news: Set<String> = []
    /// As last reported.
    private var found = PowerSupplies()

    /// - Parameter wakeInterval: how often the loop wakes up in any case, and calls `loopWoke(at:)`.
    init(
        settings: Settings, wakeInterval: Duration?, log: AgentLog, loop: EventLoop,
        changed: @escaping (Reading, EventTime) -> Void
    ) {
        self.settings = settings
        self.wakeInterval = wakeInterval.flatMap { $0 <= Self.slow ? $0 : nil }
        self.log = log
        self.loop = loop
        self.changed = changed
        alarm = loop.alarm { [unowned self] now in readAll(at: now) }
        checkAlarm = loop.alarm { [unowned self] now in
            survey?.startOverdue(at: now)
            follow(at: now)
        }
    }

    /// Those that count and what they said last, in the order of their names; nil = none are read.
    var supplies: [(name: String, words: String)]? {
        guard survey != nil else { return nil }
        let answering = found.all.map { (name: $0.name, words: words($0)) }
        let others = silent.subtracting(answering.map(\.name)).map { (name: $0, words: Self.noAnswer) }
        return (answering + others).sorted { $0.name < $1.name }
    }

    func start(at now: EventTime) {
        begin()
        if survey != nil { readAll(at: now) }
    }

    func reload(_ settings: Settings, at now: EventTime) {
        guard settings != self.settings else { return }
        let old = self.settings
        self.settings = settings
        if settings.supplies != old.supplies { begin() }
        readAll(at: now)
    }

    func stop() {
        alarm?.deadline = nil
        checkAlarm?.deadline = nil
        if let survey { loop.forget(survey.descriptor) }
    }

    /// The loop is awake for something else: no wake-up of its own is needed for the slow reading.
    func loopWoke(at now: EventTime) {
        guard survey != nil, let wakeInterval, let readAt, now >= readAt + (Self.slow - wakeInterval / 2) else {
            return
        }
        readAll(at: now)
    }

    func devicesChanged(at now: EventTime) {
        guard survey != nil else { return }
        let due = max(now + Self.settling, (readAt ?? now) + Self.between)
        alarm?.deadline = min(alarm?.deadline ?? due, due)
    }

    /// From now on those of the settings are read. What is still being read for the previous settings is dropped.
    private func begin() {
        if let survey { loop.forget(survey.descriptor) }
        survey = nil
        known = [:]
        silent = []
        news.formUnion(found.all.map(\.name))
        guard let supplies = settings.supplies else { return }
        do throws(SystemError) {
            guard let survey = PowerSupplySurvey(supplies.reader) else { throw SystemError("eventfd") }
            try loop.watch(survey.descriptor) { [unowned self] _, now in follow(at: now) }
            self.survey = survey
        } catch {
            log.warning("battery and external power are not read: \(error)")
        }
    }

    private func readAll(at now: EventTime) {
        readAt = now
        isReading = true
        alarm?.deadline = nil
        names = Set(survey?.reader.names() ?? [])
        for gone in known.keys where !names.contains(gone) {
            known[gone] = nil
            news.insert(gone)
        }
        silent.formIntersection(names)
        survey?.ask(names.sorted { (rank($0), $0) < (rank($1), $1) }, at: now)
        follow(at: now)
    }

    /// What is sure to be quick and may be urgent comes first.
    private func rank(_ name: String) -> Int {
        guard let supply = known[name] else { return 1 }
        return supply.kind == .battery || supply.kind == .other || supply.isOfPeripheral ? 2 : 0
    }

    /// Collects what has been read, and reports it once all have answered that will.
    private func follow(at now: EventTime) {
        let (answers, questions) = survey?.collect() ?? ([], [])
        for answer in answers where names.contains(answer.name) { received(answer) }
        let open = questions.filter { names.contains($0.name) }
        for question in open where question.since.map({ now >= $0 + Self.limit }) ?? false {
            guard silent.insert(question.name).inserted else { continue }
            log.supplyChanged(question.name, known[question.name].map(words) ?? Self.noAnswer, isProblem: true)
        }
        let awaited = open.filter { !silent.contains($0.name) }
        // One that was never read may change the picture: a low battery is no problem while it is charging.
        let isOverdue = now >= (readAt ?? now) + PowerSupplySurvey.timeout
        let isEnough = isOverdue && awaited.allSatisfy { known[$0.name] != nil }
        if awaited.isEmpty || isEnough, isReading || !answers.isEmpty { report(at: now) }
        if awaited.isEmpty { complete(at: now) }
        checkAlarm?.deadline = awaited.isEmpty ? nil : nextCheck(awaited, at: now)
    }

    private func nextCheck(_ awaited: [PowerSupplySurvey.Question], at now: EventTime) -> EventTime? {
        let begun = awaited.compactMap(\.since)
        var checks = begun.map { $0 + Self.limit }
        if let readAt { checks.append(readAt + PowerSupplySurvey.timeout) }
        if begun.count < awaited.count { checks.append((begun.max() ?? now) + PowerSupplySurvey.timeout) }
        return checks.filter { $0 > now }.min()
    }

    private func received(_ supply: PowerSupply) {
        let answersAgain = silent.remove(supply.name) != nil
        if answersAgain, known[supply.name] != nil {
            log.supplyChanged(supply.name, supply.words, isProblem: supply.isUnreadable)
        }
        known[supply.name] = supply
        news.insert(supply.name)
    }

    private func report(at now: EventTime) {
        let before = found
        found = PowerSupplies(Array(known.values), selection: settings.supplies?.selection ?? .init())
        let (state, old) = (found.state, before.state)
        logChanges(since: before)
        let reading = Reading(
            state: state,
            hasBattery: (before.batteries + found.batteries).contains { news.contains($0.name) }
                && [state, old].contains { $0.batteryPercent != nil || $0.charging != nil },
            isLoss: old.externalPower == true && state.externalPower == false)
        news = []
        changed(reading, now)
    }

    private func complete(at now: EventTime) {
        guard isReading else { return }
        isReading = false
        guard survey != nil else { return }
        let isLow = found.state.batteryPercent.map { Double($0) < (settings.low ?? 0) } ?? false
        guard let pause = isLow ? Self.fast : wakeInterval == nil ? Self.slow : nil else { return }
        alarm?.deadline = min(alarm?.deadline ?? now + pause, now + pause)
    }

    /// One line for each supply that comes, goes, cannot be read any more, or can again.
    private func logChanges(since before: PowerSupplies) {
        let old = Dictionary(before.all.map { ($0.name, $0) }) { first, _ in first }
        let new = Dictionary(found.all.map { ($0.name, $0) }) { first, _ in first }
        for supply in found.all {
            if old[supply.name] == nil || old[supply.name]?.isUnreadable != supply.isUnreadable {
                log.supplyChanged(supply.name, words(supply), isProblem: supply.isUnreadable)
            }
        }
        for supply in before.all where new[supply.name] == nil {
            log.supplyChanged(supply.name, "gone", isProblem: false)
        }
    }

    private static let noAnswer = "does not answer"

    private func words(_ supply: PowerSupply) -> String {
        silent.contains(supply.name) ? "\(supply.words), \(Self.noAnswer)" : supply.words
    }
}

extension BatteryConfig.SupplySettings {
    fileprivate var reader: PowerSupplyReader { PowerSupplyReader(root: root, selection: selection) }
}
