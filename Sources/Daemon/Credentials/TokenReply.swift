import WaypostCore

/// What a token command prints, or an issuer of tokens answers (RFC 6749 §5).
struct TokenReply: Hashable {
    var token: String
    /// nil = until it is refused.
    var lifetime: Duration?
    /// The one to use next time; nil = the old one stays valid.
    var refreshToken: String?

    /// Why there is no token, without any part of it.
    struct Problem: Error, Hashable {
        var message: String
        /// The issuer has refused the credential. Nothing else that goes wrong says that another one is needed.
        var isRefusal = false
    }

    /// JSON, or one line that is the token.
    init(printed bytes: [UInt8]) throws(Problem) {
        let text = bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
        if text.isEmpty { throw Problem(message: "printed nothing") }
        if text.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") {
            self = try TokenReply(json: text)
            return
        }
        guard let token = Self.token(String(validating: text, as: UTF8.self)) else {
            throw Problem(message: "printed more than one line, or what no header can hold")
        }
        self.token = token
    }

    init(json bytes: [UInt8]) throws(Problem) {
        guard let document = JSONReader.read(bytes), document.members != nil, document.isOfUsualShape else {
            throw Problem(message: "gave no valid token response")
        }
        if let error = document["error"]?.string, document["access_token"]?.string == nil {
            throw Problem(message: "gave the error \(Self.code(error))", isRefusal: true)
        }
        guard let token = Self.token(document["access_token"]?.string) else {
            throw Problem(message: "gave no access_token that a header can hold")
        }
        self.token = token
        // Some issuers write numbers in quotes.
        if let expiry = document["expires_in"], let seconds = expiry.number ?? expiry.string.flatMap({ Double($0) }),
            seconds.isFinite, seconds > 0
        {
            // Nothing is gained by more than a year.
            lifetime = .seconds(min(seconds, 366 * 86_400))
        }
        refreshToken = Self.token(document["refresh_token"]?.string)
    }

    /// `invalid_grant` and its kin; anything else could be a secret that is echoed.
    private static func code(_ text: String) -> String {
        let isCode = text.utf8.count <= 64 && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F }
        return isCode ? text : "(unreadable)"
    }

    private static func token(_ text: String?) -> String? {
        guard let text, !text.isEmpty, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return text
    }
}

extension JSONValue {
    /// Each of these members is absent, null or a string.
    fileprivate var isOfUsualShape: Bool {
        ["error", "access_token", "refresh_token"].allSatisfy {
            self[$0] == nil || self[$0] == .null || self[$0]?.string != nil
        }
    }
}
