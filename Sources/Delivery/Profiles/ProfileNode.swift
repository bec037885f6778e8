/// A piece of a profile as it was written, with the place to name in a message.
public struct ProfileNode: Hashable, Sendable {
    public indirect enum Value: Hashable, Sendable {
        /// In the order in which it is written; no name twice.
        case table([Member])
        case array([ProfileNode])
        case string(String)
        case integer(Int64)
        case float(Double)
        case boolean(Bool)
    }

    public struct Member: Hashable, Sendable {
        public var name: String
        /// Of the name itself.
        public var position: SourcePosition?
        public var node: ProfileNode

        public init(_ name: String, _ node: ProfileNode, at position: SourcePosition? = nil) {
            self.name = name
            self.node = node
            self.position = position
        }
    }

    public var value: Value
    /// nil for what no file says.
    public var position: SourcePosition?

    public init(_ value: Value, at position: SourcePosition? = nil) {
        self.value = value
        self.position = position
    }
}

/// A mistake in a profile, found before anything is sent.
public struct ProfileProblem: Error, Hashable, Sendable {
    /// `record.coords[1]`, below the profile.
    public var keyPath: String
    /// `found …, expected …`
    public var message: String
    /// What was probably meant; nil when there is no guess.
    public var suggestion: String?
    public var position: SourcePosition?

    public init(
        _ keyPath: String, _ message: String, suggestion: String? = nil, at position: SourcePosition? = nil
    ) {
        self.keyPath = keyPath
        self.message = message
        self.suggestion = suggestion
        self.position = position
    }
}

/// What is fixed for an endpoint: the names of endpoint scope in a template.
public struct ProfileConstants: Hashable, Sendable {
    public var endpoint: String
    /// Without trailing slash.
    public var baseURL: String
    public var device: String
    public var agentVersion: String
    public var vars: [String: String]
    /// Names only: values come with each rendering, since they may change.
    public var secrets: Set<String>
    /// `auth.token` exists.
    public var hasToken: Bool

    public init(
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
