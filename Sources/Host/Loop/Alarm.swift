import WaypostCore

extension EventLoop {
    /// A deadline that its owner moves. It fires once and is then unset. It leaves the loop when its owner releases it.
    package final class Alarm {
        /// Each turn of the loop reads those of all alarms, and nobody holds one while it is read.
        @exclusivity(unchecked) package var deadline: EventTime?
        let fire: (EventTime) -> Void
        private let list: AlarmList

        init(in list: AlarmList, _ fire: @escaping (EventTime) -> Void) {
            self.fire = fire
            self.list = list
            list.add(self)
        }

        deinit { list.remove(self) }
    }
}

/// The alarms of a loop, in the order in which they were made. It keeps none of them alive.
final class AlarmList {
    // Each removes itself in its deinit.
    private var alarms: [Unmanaged<EventLoop.Alarm>] = []

    var count: Int { alarms.count }

    func add(_ alarm: EventLoop.Alarm) { alarms.append(.passUnretained(alarm)) }

    func remove(_ alarm: EventLoop.Alarm) {
        let address = Unmanaged.passUnretained(alarm).toOpaque()
        alarms.removeAll { $0.toOpaque() == address }
    }

    var earliest: EventTime? {
        var earliest: EventTime?
        for alarm in alarms {
            guard let deadline = alarm._withUnsafeGuaranteedRef({ $0.deadline }) else { continue }
            if earliest.map({ deadline < $0 }) ?? true { earliest = deadline }
        }
        return earliest
    }

    func due(at now: EventTime) -> [EventLoop.Alarm] {
        var due: [EventLoop.Alarm] = []
        for alarm in alarms {
            guard let deadline = alarm._withUnsafeGuaranteedRef({ $0.deadline }), deadline <= now else { continue }
            due.append(alarm.takeUnretainedValue())
        }
        return due
    }
}
