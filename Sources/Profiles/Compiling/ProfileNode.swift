/// A piece of a profile as it was written, with the place to name in a message.
package struct ProfileNode: Hashable, Sendable {
    package indirect enum Value: Hashable, Sendable {
        /// In the order in which it is written; no name twice.
        case table([Member])
        case array([ProfileNode])
        case string(String)
        case integer(Int64)
        case float(Double)
        case boolean(Bool)
    }

    package struct Member: Hashable, Sendable {
        package var name: String
        /// Of the name itself.
        package var position: SourcePosition?
        package var node: ProfileNode

        package init(_ name: String, _ node: ProfileNode, at position: SourcePosition? = nil) {
            self.name = name
            self.node = node
            self.position = position
        }
    }

    package var value: Value
    /// nil for what no file says.
    package var position: SourcePosition?

    package init(_ value: Value, at position: SourcePosition? = nil) {
        self.value = value
        self.position = position
    }
}

/// A mistake in a profile, found before anything is sent.
package struct ProfileProblem: Error, Hashable, Sendable {
    /// `record.coords[1]`, below the profile.
    package var keyPath: String
    /// `found …, expected …`
    package var message: String
    /// What was probably meant; nil when there is no guess.
    package var suggestion: String?
    package var position: SourcePosition?

    package init(
        _ keyPath: String, _ message: String, suggestion: String? = nil, at position: SourcePosition? = nil
    ) {
        self.keyPath = keyPath
        self.message = message
        self.suggestion = suggestion
        self.position = position
    }
}

/// What is fixed for an endpoint: the names of endpoint scope in a template.
package struct ProfileConstants: Hashable, Sendable {
    package var endpoint: String
    /// Without trailing slash.
    package var baseURL: String
    package var device: String
    package var agentVersion: String
    package var vars: [String: String]
    /// Names only: values come with each rendering, since they may change.
    package var secrets: Set<String>
    /// `auth.token` exists.
    package var hasToken: Bool

    package init(
        endpoint: String, baseURL: String, device: String, agentVersion: String = "", vars: [String: String] = [:],
        secrets: Set<String> = [], hasToken: Bool = false
    ) {
        self.endpoint = endpoint
        self.baseURL = baseURL
        self.device = device
        self.agentVersion = agentVersion
        self.vars = vars
        self.secrets = secrets
        self.hasToken = hasToken
    }
}
