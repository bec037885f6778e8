import CCurl

/// The server of a URL, for messages: never the path or the query, which may contain secrets.
package struct Peer: CustomStringConvertible {
    /// An IPv6 address is in brackets.
    package let host: String
    let port: Int
    package let isSecure: Bool

    /// Nil when the URL is not one of http or https with a host.
    package init?(url: String) {
        guard !url.utf8.contains(0), let parts = curl_url() else { return nil }
        defer { curl_url_cleanup(parts) }
        guard
            curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
            let scheme = Self.part(CURLUPART_SCHEME, of: parts), scheme == "http" || scheme == "https",
            let host = Self.part(CURLUPART_HOST, of: parts),
            let port = Self.part(CURLUPART_PORT, of: parts).flatMap({ Int($0) })
        else { return nil }
        self.host = host
        self.port = port
        isSecure = scheme == "https"
    }

    package var description: String { "\(host):\(port)" }

    private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(parts, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
