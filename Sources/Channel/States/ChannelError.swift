import WaypostCore

/// What the service says of something that it refuses.
package struct ChannelError: Error, Hashable, Sendable {
    /// Of the service's list; 0 = none.
    package var code: Int
    /// As of HTTP; 0 = none.
    package var statusCode: Int
    /// For people, safe to show.
    package var message: String

    package init(code: Int = 0, statusCode: Int, message: String = "") {
        self.code = code
        self.statusCode = statusCode
        self.message = message.visible(bytesMax: 256)
    }

    /// - Parameter value: the object `error`; anything else gives nil.
    init?(_ value: JSONValue?) {
        guard let value, value.members != nil else { return nil }
        func number(_ name: String) -> Int { Int(clamping: value[name]?.integer ?? 0) }
        let code = number("code")
        // The first digits of a code are its status.
        let status = (40_000..<60_000).contains(code) ? code / 100 : 0
        self.init(
            code: code, statusCode: value["statusCode"] == nil ? status : number("statusCode"),
            message: value["message"]?.string ?? "")
    }

    /// Repeating it would give the same answer.
    package var isFatal: Bool {
        (400...499).contains(statusCode) && statusCode != 429 && code != Self.presenceWhileSuspended
    }

    /// It may be taken when it is repeated later.
    package var isRetriable: Bool { !isFatal }

    /// The credential is not taken: it has expired, is not valid yet, or is not known. Another one, or a later time, may help.
    package var isOfCredential: Bool { statusCode == 401 && !isOfCapability }

    /// The token does not permit it.
    package var isOfCapability: Bool { code == 40_160 }

    package var isTooLarge: Bool { code == 40_009 }

    package var isRateLimit: Bool { statusCode == 429 || (42_910...42_913).contains(code) }

    private static let presenceWhileSuspended = 91_001

    /// No credential could be had, and it is tried again.
    package static func credentialMissing(_ words: String) -> ChannelError {
        ChannelError(code: 100_002, statusCode: 0, message: words)
    }

    /// It was not answered.
    static let unanswered = ChannelError(statusCode: 0, message: "the service did not answer")
}
