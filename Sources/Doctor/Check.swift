/// One thing that may be wrong with a host, and how it is found.
package struct Check: Sendable {
    /// Its place: causes come before what they cause.
    package let number: Int
    /// One or two words.
    package let name: String
    /// Checks whose failure explains a failure of this one.
    let causes: [Int]
    let examine: @Sendable (Evidence) -> Finding

    init(_ number: Int, _ name: String, causes: [Int] = [], _ examine: @escaping @Sendable (Evidence) -> Finding) {
        self.number = number
        self.name = name
        self.causes = causes
        self.examine = examine
    }

    /// Another check may find what explains its failure.
    package var canBeSkipped: Bool { !causes.isEmpty }

    /// All of them, in their order; docs/doctor.md describes each.
    package static let all = [
        Check(1, "configuration", DaemonChecks.configuration),
        Check(2, "daemon", causes: [1], DaemonChecks.daemon),
        Check(3, "receiver", causes: [1], LineChecks.receiverThere),
        Check(4, "stable name", causes: [1, 3], LineChecks.stableName),
        Check(5, "device allowed", causes: [1, 3], LineChecks.unitMayOpen),
        Check(6, "group", causes: [1, 2, 3], LineChecks.group),
        Check(7, "other reader", causes: [1, 3], LineChecks.holder),
        Check(8, "ModemManager", causes: [1, 3], RivalChecks.modemManager),
        Check(9, "brltty", RivalChecks.brltty),
        Check(10, "serial console", causes: [1, 3], RivalChecks.serialConsole),
        Check(11, "Pi UART", causes: [1, 3], RivalChecks.piUART),
        Check(12, "modem", causes: [1, 2, 3], RivalChecks.modemReceiver),
        Check(13, "sentences", causes: [2, 3, 5, 6, 7, 10], SignalChecks.sentences),
        Check(14, "line speed", causes: [1, 2, 3, 5, 6, 7, 10, 13], SignalChecks.lineSpeed),
        Check(15, "fix", causes: [2, 3, 5, 6, 7, 10, 13], SignalChecks.fix),
        Check(16, "antenna", causes: [2, 3, 5, 6, 7, 10, 13], SignalChecks.antenna),
        Check(17, "date", causes: [2, 3, 5, 6, 7, 10, 13], SignalChecks.date),
        Check(18, "host clock", HostChecks.clock),
        Check(19, "power", HostChecks.power),
        Check(20, "endpoints", causes: [1, 18], DeliveryChecks.endpoints),
        Check(21, "credentials", causes: [1], DeliveryChecks.credentials),
        Check(22, "disk", causes: [1], HostChecks.disk),
        Check(23, "card wear", causes: [1], HostChecks.wear),
        Check(24, "queue", causes: [1, 22], DeliveryChecks.queue),
        Check(25, "two receivers", causes: [1, 3], DeliveryChecks.oneReceiver),
        Check(26, "rate", causes: [2, 3, 5, 6, 7, 10, 13], SignalChecks.rate),
        Check(27, "lists", causes: [1, 2], PlaceChecks.lists),
        Check(28, "remote settings", causes: [1, 2, 20], RemoteChecks.settings),
    ]
}
