import WaypostCore

/// What viewers accept. Anything else ends the subscription of some of them for ever, so what is written is read again
/// by these rules before it is sent.
package enum ChannelSchema {
    package static func isMessage(_ value: JSONValue, _ name: ChannelMessage.Name) -> Bool {
        switch name {
        case .enhanced: isEnhanced(value)
        case .raw: isRaw(value)
        }
    }

    package static func isEnhanced(_ value: JSONValue) -> Bool {
        hasOnly(value, ["location", "skippedLocations", "intermediateLocations", "type"])
            && value["location"].map(isFeature) == true && areFeatures(value["skippedLocations"])
            && areFeatures(value["intermediateLocations"])
            && ["ACTUAL", "PREDICTED"].contains(value["type"]?.string)
    }

    package static func isRaw(_ value: JSONValue) -> Bool {
        hasOnly(value, ["location", "skippedLocations"]) && value["location"].map(isFeature) == true
            && areFeatures(value["skippedLocations"])
    }

    package static func isFeature(_ value: JSONValue) -> Bool {
        guard hasOnly(value, ["type", "geometry", "properties"]), value["type"]?.string == "Feature",
            let geometry = value["geometry"], hasOnly(geometry, ["type", "coordinates"]),
            geometry["type"]?.string == "Point", let coordinates = geometry["coordinates"]?.items,
            coordinates.count == 3, let properties = value["properties"]
        else { return false }
        let numbers = coordinates.compactMap(\.number)
        return numbers.count == 3 && abs(numbers[0]) <= 180 && abs(numbers[1]) <= 90 && areProperties(properties)
    }

    /// Others than these may be there.
    private static func areProperties(_ value: JSONValue) -> Bool {
        guard let accuracy = value["accuracyHorizontal"]?.number, accuracy >= 0 else { return false }
        return ["bearing", "speed", "time"].allSatisfy { value[$0]?.number != nil }
    }

    private static func areFeatures(_ value: JSONValue?) -> Bool { value?.items?.allSatisfy(isFeature) == true }

    package static func isPresence(_ value: JSONValue) -> Bool {
        guard hasOnly(value, ["type", "resolution", "rawLocations"]), let resolution = value["resolution"],
            ["PUBLISHER", "SUBSCRIBER"].contains(value["type"]?.string)
        else { return false }
        let raw = value["rawLocations"] ?? .null
        return (resolution == .null || Resolution(onChannel: resolution) != nil) && (raw == .null || raw.bool != nil)
    }

    /// Each of the names once at most. They are so few that sets of them would cost more than to look at all.
    private static func hasOnly(_ value: JSONValue, _ names: [String]) -> Bool {
        guard let members = value.members else { return false }
        return members.indices.allSatisfy { index in
            let name = members[index].name
            return names.contains(name) && !members[..<index].contains { $0.name == name }
        }
    }
}
