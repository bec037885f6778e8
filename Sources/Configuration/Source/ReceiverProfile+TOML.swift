import Sensors

extension ReceiverProfile {
    fileprivate enum Name: String, CaseIterable {
        case none, gpsdCycle = "gpsd-cycle", ublox, mtk, casic, quectel, custom
    }

    init(reading table: TableReader) {
        var name = Name.none
        table.read("profile", into: &name, as: .word(Name.allCases.map { ($0.rawValue, $0) }))
        var commands = CustomReceiverCommands()
        let keys = [
            ("rate_commands", \CustomReceiverCommands.rate), ("sleep_commands", \CustomReceiverCommands.standby),
            ("wake_commands", \CustomReceiverCommands.wake),
        ]
        for (key, path) in keys { table.read(key, into: &commands[keyPath: path], as: .receiverCommands) }
        switch name {
        case .none: self = .none
        case .gpsdCycle: self = .gpsdCycle
        case .ublox: self = .ublox
        case .mtk: self = .mtk
        case .casic: self = .casic
        case .quectel: self = .quectel
        case .custom: self = .custom(commands)
        }
        if name == .custom {
            if keys.allSatisfy({ !table.has($0.0) }) {
                table.report("rate_commands", "found nothing, expected the commands of a profile = \"custom\"")
            }
            if commands.standby.isEmpty != commands.wake.isEmpty {
                let missing = commands.wake.isEmpty ? "wake_commands" : "sleep_commands"
                table.report(
                    missing, "found nothing, expected it with its counterpart: a receiver that sleeps must be woken")
            }
        } else {
            for (key, path) in keys where !commands[keyPath: path].isEmpty {
                table.report(
                    key, "found with profile = \(name.rawValue.asTOML), expected only with profile = \"custom\"")
            }
        }
    }
}

extension SourceConfig {
    /// Gives the receiver's profile to the source that can use it, or reports that it cannot.
    mutating func take(_ profile: ReceiverProfile, _ table: TableReader) {
        if case .serial(var settings) = self, profile != .gpsdCycle {
            settings.receiver = profile
            self = .serial(settings)
        } else if case .gpsd(var settings) = self, !profile.writesToLine {
            settings.receiver = profile
            self = .gpsd(settings)
        } else if profile != .none {
            let kind = profile.writesToLine ? "serial" : "gpsd"
            table.report(
                "profile", "found with a [source] that it cannot reach, expected only with kind = \(kind.asTOML)")
        }
    }
}

extension ValueForm where Value == [ReceiverCommand] {
    fileprivate static var receiverCommands: ValueForm {
        ValueForm(
            expected: "an array of commands such as [\"$PMTK220,{ms}\"]",
            read: { node, _ throws(Mistake) in
                try node.elements(0...8) { element throws(Mistake) in
                    if case .string(let text) = element.value, let command = ReceiverCommand(text) { return command }
                    throw Mistake(found: element.description, expected: ReceiverCommand.expectation)
                }
            },
            render: { $0.map(\.text).asTOML })
    }
}
