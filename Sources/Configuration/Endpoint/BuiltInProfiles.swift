import Profiles

/// The profiles that come with waypost: TOML files, parsed like those of a user when they are needed.
package enum BuiltInProfiles {
    /// In the order in which people look for them: our own, then servers by name.
    private static let files: [(name: String, text: @Sendable () -> [UInt8])] = [
        ("waypost", { PackageResources.waypost_toml }),
        ("waypost-verbose", { PackageResources.waypost_verbose_toml }),
        ("waypost-compact", { PackageResources.waypost_compact_toml }),
        ("waypost-mqtt", { PackageResources.waypost_mqtt_toml }),
        ("accesso", { PackageResources.accesso_toml }),
        ("aws-location", { PackageResources.aws_location_toml }),
        ("cloudevents", { PackageResources.cloudevents_toml }),
        ("csv", { PackageResources.csv_toml }),
        ("geojson", { PackageResources.geojson_toml }),
        ("here", { PackageResources.here_toml }),
        ("home-assistant", { PackageResources.home_assistant_toml }),
        ("home-assistant-mqtt", { PackageResources.home_assistant_mqtt_toml }),
        ("influx", { PackageResources.influx_toml }),
        ("influx2", { PackageResources.influx2_toml }),
        ("kafka-rest", { PackageResources.kafka_rest_toml }),
        ("nextbillion", { PackageResources.nextbillion_toml }),
        ("overland", { PackageResources.overland_toml }),
        ("overland-any", { PackageResources.overland_any_toml }),
        ("owntracks-http", { PackageResources.owntracks_http_toml }),
        ("owntracks-mqtt", { PackageResources.owntracks_mqtt_toml }),
        ("owntracks-open", { PackageResources.owntracks_open_toml }),
        ("thingsboard", { PackageResources.thingsboard_toml }),
        ("thingsboard-mqtt", { PackageResources.thingsboard_mqtt_toml }),
        ("traccar", { PackageResources.traccar_toml }),
        ("traccar-json", { PackageResources.traccar_json_toml }),
        ("transistor", { PackageResources.transistor_toml }),
    ]

    package static let names = files.map(\.name)

    /// Name of the file in the positions of its nodes.
    static func fileName(_ name: String) -> String { "<profile \(name)>" }

    /// nil = there is none of that name.
    static func text(_ name: String) -> String? {
        files.first { $0.name == name }.map { String(decoding: $0.text(), as: UTF8.self) }
    }

    /// As it is written, `extends` and all; nil = there is none of that name.
    static func tree(_ name: String) -> ProfileNode? {
        guard let file = files.first(where: { $0.name == name }) else { return nil }
        do throws(ConfigurationProblems) {
            return ProfileNode(try TOMLTable.parse(file.text(), file: fileName(name)))
        } catch {
            preconditionFailure("built-in profile: \(error)")
        }
    }

    /// The first line of its file.
    package static func summary(_ name: String) -> String {
        let line = text(name)?.prefix { $0 != "\n" } ?? ""
        return String(line.drop { $0 == "#" || $0 == " " })
    }
}
