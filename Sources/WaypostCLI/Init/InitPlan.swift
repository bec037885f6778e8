import Configuration
import WaypostCore

/// What `init` has found out and was told. Pure: its text is the configuration.
struct InitPlan: Equatable {
    enum Source: Equatable {
        case serial(String)
        case gpsd(host: String?, port: String?)
        case udp(port: String)
        case tcp(host: String, port: String)

        /// As in `--source`; nil = it is none.
        init?(_ text: String) {
            let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
            switch (parts[0], parts.count) {
            case (let path, 1) where path.hasPrefix("/"): self = .serial(path)
            case ("gpsd", 1): self = .gpsd(host: nil, port: nil)
            case ("gpsd", 2...3): self = .gpsd(host: parts[1], port: parts.count > 2 ? parts[2] : nil)
            case ("udp", 2): self = .udp(port: parts[1])
            case ("tcp", 3): self = .tcp(host: parts[1], port: parts[2])
            default:
                // Names below by-path have colons.
                guard text.hasPrefix("/") else { return nil }
                self = .serial(text)
            }
        }

        var lines: [String] {
            switch self {
            case .serial(let path): ["kind = \"serial\"", "path = \(path.quoted)"]
            case .gpsd(let host, let port):
                ["kind = \"gpsd\""] + (host.map { ["host = \($0.quoted)"] } ?? [])
                    + (port.map { ["port = \($0)"] } ?? [])
            case .udp(let port): ["kind = \"udp\"", "port = \(port)"]
            case .tcp(let host, let port): ["kind = \"tcp\"", "host = \(host.quoted)", "port = \(port)"]
            }
        }
    }

    struct Server: Equatable {
        var kind: String
        var url: String
        var vars: [String: String] = [:]
        var user: String?
        /// The file that has the secret; nil = there is none.
        var secretFile: String?
        var allowsPlaintext = false
        /// The file with the certificate of its authority; nil = those that this host knows.
        var authority: String?
        /// Of the endpoint; nil = the only one, which needs none.
        var name: String?
    }

    /// nil = each machine derives it from its machine id.
    var device: String?
    var source: Source
    var server: Server?

    /// The configuration.
    var text: String {
        var lines = ["# Written by waypost init. All keys: /usr/share/doc/waypost/configuration.md", "", "[device]"]
        lines.append(device.map { "id = \($0.quoted)" } ?? "# Each machine derives its id from its own machine id.")
        lines += ["", "[source]"] + source.lines
        if let endpoint { lines += [""] + endpoint }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Its table of the configuration; nil = there is no server.
    var endpoint: [String]? {
        guard let server, let kind = ServerKind.named(server.kind) else { return nil }
        var lines = ["[[endpoint]]"] + (server.name.map { ["name = \($0.quoted)"] } ?? [])
        lines += ["profile = \(kind.profile.quoted)", "base_url = \(server.url.quoted)"]
        // Of the first server alone: a second one is no reason to send everything again.
        if server.name == nil {
            lines += ["# What was recorded before there was a server goes there too.", "backfill = true"]
        }
        if let authority = server.authority { lines.append("tls = { ca = \(authority.quoted) }") }
        if !kind.vars.isEmpty {
            let vars = kind.vars.map { "\($0.name) = \((server.vars[$0.name] ?? "").quoted)" }
            lines.append("vars = { \(vars.joined(separator: ", ")) }")
        }
        if let file = server.secretFile, let secret = kind.secret {
            let reference = "file:\(file)".quoted
            switch kind.auth {
            case "basic":
                let user = (server.user ?? device ?? "").quoted
                lines.append("auth = { kind = \"basic\", user = \(user), password = \(reference) }")
            case "bearer": lines.append("auth = { kind = \"bearer\", token = \(reference) }")
            default: lines.append("secrets = { \(secret.name) = \(reference) }")
            }
            if server.allowsPlaintext { lines.append("allow_plaintext = true") }
        }
        return lines
    }

    /// A configuration with one endpoint more, which has a name: what is there stays as it is, but for the name of a single endpoint
    /// that had none, under which what waits for it is kept.
    ///
    /// - Parameter unnamed: there is one endpoint, and it has no name.
    /// - Returns: nil where the endpoint without a name is not in this text, as in a drop-in.
    static func adding(_ endpoint: [String], to text: String, unnamed: Bool) -> String? {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if unnamed {
            let heads = lines.indices.filter { index in
                lines[index].prefix { $0 != "#" }.filter { $0 != " " && $0 != "\t" && $0 != "\r" } == "[[endpoint]]"
            }
            guard heads.count == 1 else { return nil }
            lines.insert("name = \"main\"", at: heads[0] + 1)
        }
        while lines.last?.isEmpty == true { lines.removeLast() }
        return (lines + [""] + endpoint).joined(separator: "\n") + "\n"
    }

    /// Lines that set something: what is left of a configuration without remarks.
    static func settings(of text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimming { $0 == " " || $0 == "\t" || $0 == "\r" } }
            .filter { !$0.isEmpty && $0.first != "#" }.map(String.init)
    }
}

extension String {
    /// As a string of TOML.
    fileprivate var quoted: String {
        var text = "\""
        for scalar in unicodeScalars {
            if scalar == "\"" || scalar == "\\" { text += "\\" }
            text.unicodeScalars.append(scalar.value < 0x20 || scalar.value == 0x7F ? " " : scalar)
        }
        return text + "\""
    }
}
