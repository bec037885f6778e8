import Positioning

/// A profile made ready for one endpoint: how its rows become requests, and what the replies mean.
///
/// Whatever could go wrong with a template was found when it was made; rendering cannot fail.
public struct Profile: Hashable, Sendable {
    public var name: String
    /// Names whatever decides the bytes of a body: when it changes, a waiting batch goes out under a new id.
    public var rendering: String
    public var response: ResponseRules
    /// Most rows of one request; nil = no limit of its own.
    public var maxRecords: Int?
    /// Most bytes of a body before compression. The default is 1 MiB.
    public var maxBytes: Int
    /// Rows of different trackables never share a request.
    public var gathersTrackables: Bool
    /// Bodies bear the newest location beside the batch while more than one batch waits.
    public var usesNewest: Bool

    public init(
        name: String = "waypost", rendering: String = BatchEncoder.rendering, response: ResponseRules = .waypost,
        maxRecords: Int? = nil, maxBytes: Int = 1 << 20, gathersTrackables: Bool = false, usesNewest: Bool = false
    ) {
        self.name = name
        self.rendering = rendering
        self.response = response
        self.maxRecords = maxRecords
        self.maxBytes = maxBytes
        self.gathersTrackables = gathersTrackables
        self.usesNewest = usesNewest
    }
}

/// What a rendering needs beside the rows and what is fixed for the endpoint.
public struct RenderContext: Sendable {
    /// The id of a record from the uuid (16 bytes) of the queue that numbered it and its sequence number.
    public var identify: @Sendable (_ outbox: [UInt8], _ seq: Int64) -> String
    public var secrets: RequestSecrets
    /// For eyes: every secret is shown as `***`.
    public var isMasked: Bool
    /// false once the server has refused compressed bodies.
    public var gzip: Bool

    public init(
        identify: @escaping @Sendable ([UInt8], Int64) -> String = { _, seq in String(seq) },
        secrets: RequestSecrets = RequestSecrets(), isMasked: Bool = false, gzip: Bool = true
    ) {
        self.identify = identify
        self.secrets = secrets
        self.isMasked = isMasked
        self.gzip = gzip
    }
}

/// Secrets as of now. Never logged, never stored.
public struct RequestSecrets: Hashable, Sendable {
    public var values: [String: String]
    /// What the token command gave last.
    public var token: String?

    public init(values: [String: String] = [:], token: String? = nil) {
        self.values = values
        self.token = token
    }
}

extension EndpointSettings {
    /// The request for a batch: the same batch gives the same body at every attempt.
    public func request(for batch: Batch, in context: RenderContext = RenderContext()) -> UplinkRequest {
        BatchEncoder(settings: self, outbox: batch.outboxName).request(for: batch, gzip: context.gzip)
    }
}
