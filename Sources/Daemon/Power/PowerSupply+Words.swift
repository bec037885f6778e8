import Sensors

extension PowerSupplies {
    /// Each that counts once, by name.
    var all: [PowerSupply] {
        let names = Set(batteries.map(\.name))
        return (batteries + chargers.filter { !names.contains($0.name) }).sorted { $0.name < $1.name }
    }
}

extension PowerSupply {
    /// `battery, 77 %, discharging`
    var words: String {
        var parts = [kind.word]
        if let capacity { parts.append("\(capacity) %") }
        if let status { parts.append(status.word) }
        if let isOnline { parts.append(isOnline ? "connected" : "not connected") }
        if isUnreadable { parts.append("cannot be read") }
        return parts.joined(separator: ", ")
    }
}

extension PowerSupply.Kind {
    var word: String {
        switch self {
        case .battery: "battery"
        case .ups: "UPS"
        case .mains: "mains"
        case .usb: "USB"
        case .wireless: "wireless charger"
        case .other: "supply"
        }
    }
}

extension PowerSupply.Status {
    var word: String {
        switch self {
        case .charging: "charging"
        case .discharging: "discharging"
        case .notCharging: "not charging"
        case .full: "full"
        }
    }
}
