/// What a topic may be (MQTT 5, 4.7).
package enum MQTTTopic {
    /// What is wrong with a name to publish to, for people; nil = nothing.
    package static func problem(of topic: String) -> String? {
        if topic.isEmpty { return "the topic is empty" }
        if topic.utf8.count > 0xFFFF { return "the topic is longer than 65535 bytes" }
        if topic.hasByte({ $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }) {
            return "the topic has a wildcard (# or +)"
        }
        return topic.hasByte { $0 == 0 } ? "the topic has a NUL" : nil
    }

    /// What is wrong with a filter to subscribe to, for people; nil = nothing.
    package static func problem(ofFilter filter: String) -> String? {
        if filter.isEmpty { return "the topic filter is empty" }
        if filter.utf8.count > 0xFFFF { return "the topic filter is longer than 65535 bytes" }
        if filter.utf8.contains(0) { return "the topic filter has a NUL" }
        let levels = filter.split(separator: "/", omittingEmptySubsequences: false)
        for (index, level) in levels.enumerated() {
            if level.contains("+"), level != "+" { return "the wildcard + is not alone between slashes" }
            if level.contains("#"), level != "#" || index < levels.count - 1 {
                return "the wildcard # is not alone behind the last slash"
            }
        }
        return nil
    }

    /// A value as one level of a topic: what `problem(ofVariable:)` would name is a `-`.
    package static func level(_ value: String) -> String {
        guard problem(ofVariable: value) != nil else { return value }
        var level = ""
        for scalar in value.unicodeScalars {
            guard level.utf8.count <= bytesMax - 4 else { break }
            level.unicodeScalars.append(problem(ofVariable: String(scalar)) == nil ? scalar : "-")
        }
        return level.isEmpty ? "-" : level
    }

    private static let bytesMax = 256

    /// What is wrong with the value of a variable within a topic, for people; nil = nothing.
    ///
    /// It is one level, and stays one: RabbitMQ and NATS turn `.` and `/` into each other, and NATS takes no blanks.
    package static func problem(ofVariable value: String) -> String? {
        if value.isEmpty { return "it is empty" }
        if value.utf8.count > bytesMax { return "it is longer than 256 bytes" }
        for scalar in value.unicodeScalars {
            switch scalar {
            case ".", "/", "+", "#", "*", ">": return "it has a \(scalar), which separates or matches topics"
            // Swift looks the properties up in tables, also those of letters and digits.
            case "!"..."~": break
            case _ where scalar.properties.isWhitespace || scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                return "it has a blank or a control character"
            default: break
            }
        }
        return nil
    }
}
