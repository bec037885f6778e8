import WaypostCore

/// A profile made ready for one endpoint: how its rows become requests, and what the replies mean.
///
/// Whatever could go wrong with a template was found when it was made; rendering cannot fail. A profile that was made
/// without templates sends arrays of canonical records to the base URL.
package struct Profile: Sendable {
    package var name: String
    /// Names whatever decides the bytes of a body: when it changes, a waiting batch goes out under a new id.
    package var rendering: String
    package var response: ResponseRules
    /// Most rows of one request; nil = no limit of its own.
    package var maxRecords: Int?
    /// Most bytes of a body before compression. The default is 1 MiB.
    package var maxBytes: Int
    /// Rows of different trackables never share a request.
    package var gathersTrackables: Bool
    /// Bodies contain the newest location beside the batch while more than one batch waits.
    package var usesNewest: Bool
    /// URL, headers or body contain a secret or a token.
    package var usesSecrets: Bool

    var compiled = CompiledProfile.plain

    /// Part of each rendering. It is raised by 1 with any change after which the same profile renders the same rows to
    /// other bytes; RenderingTests finds such a change.
    static let rendererVersion = 3

    package init(
        name: String = "plain", rendering: String? = nil, response: ResponseRules = .http,
        maxRecords: Int? = nil, maxBytes: Int = 1 << 20, gathersTrackables: Bool = false, usesNewest: Bool = false,
        usesSecrets: Bool = false
    ) {
        self.name = name
        self.rendering = rendering ?? "plain/\(Self.rendererVersion)"
        self.response = response
        self.maxRecords = maxRecords
        self.maxBytes = maxBytes
        self.gathersTrackables = gathersTrackables
        self.usesNewest = usesNewest
        self.usesSecrets = usesSecrets
    }

    /// The request that binds an asset to this device exists.
    package var canBind: Bool { compiled.parts.bind != nil }

    /// There is a request that stores nothing and shows more than a connection: with a broker, that is the connection itself.
    package var hasProbe: Bool { compiled.parts.probe != nil || isForBroker }

    /// The server distinguishes trackables.
    package var namesTrackable: Bool { compiled.parts.namesTrackable }

    /// Rows go to a broker as messages.
    package var isForBroker: Bool { compiled.parts.broker != nil }
}

extension Profile: Hashable {
    /// Templates are equal when they were made from equal trees and constants.
    package static func == (a: Profile, b: Profile) -> Bool {
        a.compiled.identity == b.compiled.identity && a.name == b.name && a.rendering == b.rendering
            && a.response == b.response && a.maxRecords == b.maxRecords && a.maxBytes == b.maxBytes
            && a.gathersTrackables == b.gathersTrackables && a.usesNewest == b.usesNewest
            && a.usesSecrets == b.usesSecrets
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(rendering)
        hasher.combine(compiled.identity)
    }
}

/// What a rendering needs beside the rows and what is fixed for the endpoint.
package struct RenderContext: Sendable {
    /// The id of a record from the uuid (16 bytes) of the queue that numbered it and its sequence number.
    package var identify: @Sendable (_ outbox: [UInt8], _ seq: Int64) -> String
    package var secrets: RequestSecrets
    /// For display: every secret is shown as `***`.
    package var isMasked: Bool
    /// false once the server has refused compressed bodies.
    package var gzip: Bool

    package init(
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
package struct RequestSecrets: Hashable, Sendable {
    package var values: [String: String]
    /// What the token command gave last.
    package var token: String?

    package init(values: [String: String] = [:], token: String? = nil) {
        self.values = values
        self.token = token
    }
}
