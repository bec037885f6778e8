import Hash
import Protocols
import WaypostCore

/// AWS Signature Version 4 of requests to one service of one region. Not for `s3`, which canonicalises paths
/// differently.
package struct SigV4: Hashable, Sendable {
    package var region: String
    package var service: String
    /// The id of the key.
    package var accessKey: String
    package var secretKey: String
    /// Of temporary credentials; nil for permanent ones.
    package var sessionToken: String?

    package init(region: String, service: String, accessKey: String, secretKey: String, sessionToken: String? = nil) {
        self.region = region
        self.service = service
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    /// - Parameter time: Unix seconds.
    func headers(for request: UplinkRequest, time: Int64) -> [UplinkRequest.Header] {
        let stamp = Self.basicStamp(time)
        var own: [UplinkRequest.Header] = [.init("X-Amz-Date", stamp)]
        if let sessionToken { own.append(.init("X-Amz-Security-Token", sessionToken)) }
        let url = SignedURL(request.url)
        var signed = own.map { ($0.name.lowercased(), Self.trimmed($0.value)) } + [("host", url.host)]
        if let type = request.headers.first(where: { $0.name.lowercased() == "content-type" }) {
            signed.append(("content-type", Self.trimmed(type.value)))
        }
        signed.sort { $0.0 < $1.0 }
        let names = signed.map(\.0).joined(separator: ";")
        let canonical = [
            request.method, url.canonicalPath, url.canonicalQuery, signed.map { "\($0):\($1)\n" }.joined(), names,
            String(hexOf: SHA256.hash(request.body)),
        ].joined(separator: "\n")

        let day = stamp.prefix(8)
        let scope = "\(day)/\(region)/\(service)/aws4_request"
        let text = "AWS4-HMAC-SHA256\n\(stamp)\n\(scope)\n\(String(hexOf: SHA256.hash(Array(canonical.utf8))))"
        var key = Array("AWS4\(secretKey)".utf8)
        for part in [String(day), region, service, "aws4_request", text] {
            key = HMACSHA256.authenticate(Array(part.utf8), key: key)
        }
        own.append(
            .init(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), SignedHeaders=\(names), "
                    + "Signature=\(String(hexOf: key))"))
        return own
    }

    /// `20231114T221320Z`
    static func basicStamp(_ time: Int64) -> String {
        // Years 0 to 9999: beyond them the stamp has no spelling, and no clock is right.
        let time = min(max(time, -62_167_219_200), 253_402_300_799)
        return UTCTime(milliseconds: time * 1000).iso8601.prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
    }

    /// Without blanks at the ends, and one for each run of them within.
    private static func trimmed(_ value: String) -> String {
        value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")
    }
}

/// A URL as Signature Version 4 writes it down.
private struct SignedURL {
    /// As in the `Host` header.
    let host: String
    private let path: Substring
    private let query: Substring

    init(_ url: String) {
        let peer = Peer(url: url)
        let usual = peer.map { $0.port == ($0.isSecure ? 443 : 80) } ?? true
        host = peer.map { usual ? $0.host : "\($0.host):\($0.port)" } ?? ""
        // Splitting at the separators is enough: libcurl has checked the URL, and templates encode what they insert.
        let bare = url.prefix { $0 != "#" }
        let afterScheme = bare.firstIndex(of: ":").map { bare[$0...].drop { $0 == ":" || $0 == "/" } } ?? bare
        let target = afterScheme.drop { $0 != "/" && $0 != "?" }
        path = target.prefix { $0 != "?" }
        query = target.drop { $0 != "?" }.dropFirst()
    }

    /// Without dot segments and doubled slashes, and each segment encoded once more, as all services but S3 want it.
    var canonicalPath: String {
        var segments: [Substring] = []
        for segment in path.split(separator: "/") where segment != "." {
            if segment == ".." { _ = segments.popLast() } else { segments.append(segment) }
        }
        let ended = path.hasSuffix("/") && !segments.isEmpty
        return "/" + segments.map { String(percentEncoding: $0.utf8) }.joined(separator: "/") + (ended ? "/" : "")
    }

    var canonicalQuery: String {
        let pairs = query.split(separator: "&").map { pair in
            let name = pair.prefix { $0 != "=" }
            let value = pair.dropFirst(name.count + 1)
            return (String(percentEncoding: percentDecoded(name)), String(percentEncoding: percentDecoded(value)))
        }
        return pairs.sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
    }
}

/// What is no `%XX` stays as it is.
private func percentDecoded(_ text: Substring) -> [UInt8] {
    let source = Array(text.utf8)
    var bytes: [UInt8] = []
    var index = 0
    func digit(_ at: Int) -> UInt8? {
        guard source.indices.contains(at) else { return nil }
        return Character(UnicodeScalar(source[at])).hexDigitValue.map { UInt8($0) }
    }
    while index < source.count {
        if source[index] == UInt8(ascii: "%"), let high = digit(index + 1), let low = digit(index + 2) {
            bytes.append(high << 4 | low)
            index += 3
        } else {
            bytes.append(source[index])
            index += 1
        }
    }
    return bytes
}
