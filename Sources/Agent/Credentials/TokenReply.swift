import FoundationEssentials
import Positioning

/// What a token command prints, or an issuer of tokens answers (RFC 6749 §5).
struct TokenReply: Hashable {
    var token: String
    /// nil = until it is refused.
    var lifetime: Duration?
    /// A new one to ask with the next time; nil = the old one stays good.
    var refreshToken: String?

    private struct Document: Decodable {
        var accessToken: String?
        var expiresIn: Number?
        var refreshToken: String?
        var error: String?

        enum CodingKeys: String, CodingKey {
            case error
            case accessToken = "access_token"
            case expiresIn = "expires_in"
            case refreshToken = "refresh_token"
        }
    }

    /// Some issuers write numbers in quotes.
    private struct Number: Decodable {
        var seconds: Double?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            seconds =
                (try? container.decode(Double.self)) ?? (try? container.decode(String.self)).flatMap { Double($0) }
        }
    }

    /// Why there is no token, in words that hold nothing of it.
    struct Problem: Error, Hashable {
        var message: String
        /// Whoever gives tokens out could not be asked.
        var mayPass = false
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
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)) else {
            throw Problem(message: "gave no JSON of the usual shape")
        }
        if let error = document.error, document.accessToken == nil {
            throw Problem(message: "gave the error \(Self.code(error))")
        }
        guard let token = Self.token(document.accessToken) else {
            throw Problem(message: "gave no access_token that a header can hold")
        }
        self.token = token
        if let seconds = document.expiresIn?.seconds, seconds.isFinite, seconds > 0 {
            // A year: nothing is gained by believing more.
            lifetime = .seconds(min(seconds, 366 * 86_400))
        }
        refreshToken = Self.token(document.refreshToken)
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
