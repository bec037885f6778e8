import Protocols
import WaypostCore

/// What a server says in the body of an answer that refuses, in a form that is safe to show to people.
package enum ServerWords {
    private static let charactersMax = 120
    /// Bytes that are looked at, and those of the words while they are cut to characters.
    private static let bytesMax = 2048
    private static let wordBytesMax = 4 * charactersMax

    /// The title of a page, or else the first line with a letter or digit, without the status that it may begin with.
    ///
    /// - Parameter status: of the answer.
    /// - Returns: nil where there is no text.
    package static func first(of body: [UInt8], status: Int) -> String? {
        let text = body.prefix(bytesMax)
        guard !text.starts(with: [0x1F, 0x8B]), !text.contains(0) else { return nil }
        let page = HTMLCheck(UplinkReply(status: status, body: Array(text)))
        let isPage = if case .page = page { true } else { false }
        if case .page(let title?) = page { return cut(title, status) }
        let plain = isPage ? withoutTags(text) : Array(text)
        let line = plain.split { $0 == 0x0A || $0 == 0x0D }.first { $0.contains(where: \.isOfWord) }
        return line.flatMap { cut(String(decoding: $0, as: UTF8.self), status) }
    }

    /// What to change where a well-known server says this; nil = nothing is known.
    package static func cure(for words: String) -> String? {
        let small = words.lowercased()
        return known.first { small.firstOccurrence(of: $0.words) != nil }?.cure
    }

    private static let wantsCertificate =
        "the server wants a certificate of this device: set client_cert and client_key in [endpoint.tls]"
    /// Where the alert that says so was lost with the connection.
    package static let mayWantCertificate = "perhaps " + wantsCertificate
    private static let refusesCertificate =
        "the server does not accept the certificate of this device: renew client_cert, or have its authority added there"
    private static let useHTTPS = "base_url has to begin with https://"
    /// nginx, Go (Caddy), Apache and Tomcat.
    private static let known: [(words: String, cure: String)] = [
        ("plain http request was sent to https port", useHTTPS), ("an http request to an https server", useHTTPS),
        ("plain http to an ssl-enabled server port", useHTTPS), ("host and port requires tls", useHTTPS),
        ("no required ssl certificate was sent", wantsCertificate), ("the ssl certificate error", refusesCertificate),
    ]

    /// Alerts of TLS as OpenSSL prints them, about a certificate, which can only be that of this device. By TLS 1.2 one that is missing
    /// is a handshake that fails, and so is one without a common cipher.
    private static let alerts: [(words: String, cure: String)] = [
        ("certificate required", wantsCertificate), ("handshake failure", mayWantCertificate),
        ("unknown ca", refusesCertificate), ("bad certificate", refusesCertificate),
        ("certificate expired", refusesCertificate), ("certificate revoked", refusesCertificate),
        ("certificate unknown", refusesCertificate), ("unsupported certificate", refusesCertificate),
        ("access denied", refusesCertificate),
    ]

    /// An alert of a server and what to do about it.
    ///
    /// - Parameter text: of a TLS library, as "error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0".
    /// - Returns: nil where no alert about a certificate is in it.
    package static func alert(in text: String) -> String? {
        alerts.first { text.firstOccurrence(of: "alert " + $0.words) != nil }.map {
            "TLS alert \"\($0.words)\": \($0.cure)"
        }
    }

    private static func cut(_ text: String, _ status: Int) -> String? {
        var words = text.trimming { $0 == " " || $0 == "\t" }
        let prefix = "\(status) "
        if words.hasPrefix(prefix) { words = words.dropFirst(prefix.count) }
        let safe = String(words).visible(bytesMax: wordBytesMax)
        guard safe.utf8.contains(where: \.isOfWord) else { return nil }
        return safe.count <= charactersMax ? safe : safe.prefix(charactersMax - 1) + "…"
    }

    private static func withoutTags(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var isTag = false
        var plain: [UInt8] = []
        for byte in text {
            switch byte {
            case UInt8(ascii: "<"): isTag = true
            case UInt8(ascii: ">"): isTag = false
            default: if !isTag { plain.append(byte) }
            }
        }
        return plain
    }
}

extension UInt8 {
    /// A letter or digit, or a part of one beyond ASCII.
    fileprivate var isOfWord: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), 0x80...:
            true
        default: false
        }
    }
}
