import Configuration
import WaypostCore

/// A server that `init` knows: what it is asked for, and what that becomes.
struct ServerKind {
    /// The word of `--server`.
    let name: String
    let title: String
    let profile: String
    /// What its address looks like.
    let example: String
    /// Added where an address has no path; nil = nothing.
    var path: String?
    /// The scheme of an address that has none.
    var scheme = "https"
    /// A port that is that of the server itself, without TLS.
    var plainPort: String?
    /// Name and meaning of what the profile needs.
    var vars: [(name: String, question: String)] = []
    /// Name and meaning of the secret; nil = it needs none.
    var secret: (name: String, question: String)?
    /// A user for `auth`, beside the secret.
    var hasUser = false
    /// The auth that is not in the profile.
    var auth: String?
    var isSecretOptional = false

    static let all: [ServerKind] = [
        ServerKind(
            name: "traccar", title: "Traccar", profile: "traccar", example: "http://traccar.lan:5055",
            plainPort: "5055"),
        ServerKind(
            name: "dawarich", title: "Dawarich", profile: "overland", example: "https://dawarich.example",
            path: "/api/v1/overland/batches", plainPort: "3000", secret: ("token", "API key of the account")),
        ServerKind(
            name: "home-assistant", title: "Home Assistant, OwnTracks webhook", profile: "home-assistant",
            example: "https://home.example/api/webhook/ID", plainPort: "8123",
            vars: [("user", "name of the user"), ("tid", "two letters for the map")]),
        ServerKind(
            name: "home-assistant-mqtt", title: "Home Assistant over MQTT", profile: "home-assistant-mqtt",
            example: "mqtts://broker.example", scheme: "mqtts", plainPort: "1883",
            secret: ("password", "password at the broker"), hasUser: true, auth: "basic", isSecretOptional: true),
        ServerKind(
            name: "owntracks", title: "OwnTracks Recorder", profile: "owntracks-http",
            example: "https://owntracks.example",
            plainPort: "8083", vars: [("user", "name of the user"), ("tid", "two letters for the map")],
            secret: ("password", "password of the user")),
        ServerKind(
            name: "mqtt", title: "another MQTT broker", profile: "waypost-mqtt", example: "mqtts://broker.example",
            scheme: "mqtts", plainPort: "1883", secret: ("password", "password at the broker"), hasUser: true,
            auth: "basic", isSecretOptional: true),
        ServerKind(
            name: "own", title: "a server of your own (POST /locations)", profile: "waypost",
            example: "https://fleet.example", secret: ("token", "token, as of Authorization: Bearer"), auth: "bearer",
            isSecretOptional: true),
    ]

    static func named(_ name: String) -> ServerKind? { all.first { $0.name == name } }

    /// An address as people write it, complete.
    ///
    /// - Returns: nil where it cannot be one.
    func address(_ text: String) -> String? {
        var text = text.trimmingSpaces
        if text.firstOccurrence(of: "://") == nil {
            let host = text.prefix { $0 != "/" }
            let isPlain = plainPort.map { host.hasSuffix(":\($0)") } == true
            text = (isPlain ? String(scheme.dropLast(scheme.hasSuffix("s") ? 1 : 0)) : scheme) + "://" + text
        }
        while text.hasSuffix("/") { text.removeLast() }
        guard let start = text.firstOccurrence(of: "://")?.upperBound, case .success = BaseURL.parse(text) else {
            return nil
        }
        if let path, !text[start...].contains("/") { text += path }
        return text
    }
}
