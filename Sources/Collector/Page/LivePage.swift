import CPages
import FlyingFox
import Foundation

/// The page on which a person sees what arrives: files that are part of the program, and a stream of events.
struct LivePage: Sendable {
    let feed: LiveFeed

    private static let index = "live/index.html"
    /// The page loads and connects to nothing but this collector, and no other page may frame it.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'"

    /// Nil when the path is none of the page's.
    func answer(_ request: HTTPRequest) -> HTTPResponse? {
        if request.path == "/events" { return events(request) }
        var index = 0
        while let part = live_page_part(index)?.pointee {
            let path = String(cString: part.path)
            if request.path == (path == Self.index ? "/" : "/\(path)") { return file(part, Self.type(of: path)) }
            index += 1
        }
        return nil
    }

    private static func type(of path: String) -> String {
        if path.hasSuffix(".html") { return "text/html; charset=utf-8" }
        return path.hasSuffix(".css") ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
    }

    private func file(_ part: PagePart, _ type: String) -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok, headers: Self.headers(type),
            body: Data(UnsafeBufferPointer(start: part.bytes, count: part.count)))
    }

    private func events(_ request: HTTPRequest) -> HTTPResponse {
        // A browser that reconnects by itself sends the header; a page that opens another connection can only ask.
        let last = request.headers[HTTPHeader("Last-Event-ID")] ?? request.query["after"]
        guard let reader = feed.reader(after: last) else {
            return HTTPResponse(
                statusCode: .serviceUnavailable, headers: Self.headers("text/plain"),
                body: Data("\(LiveFeed.readersMax) pages are open already; close one\n".utf8))
        }
        return HTTPResponse(
            statusCode: .ok, headers: Self.headers("text/event-stream"),
            body: HTTPBodySequence(from: LiveStream(reader: reader)))
    }

    private static func headers(_ type: String) -> HTTPHeaders {
        [
            .contentType: type, HTTPHeader("Cache-Control"): "no-store",
            HTTPHeader("Content-Security-Policy"): policy, HTTPHeader("X-Content-Type-Options"): "nosniff",
            HTTPHeader("Referrer-Policy"): "no-referrer", HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
        ]
    }

    /// Whether a browser means this machine. A page from elsewhere whose name leads to 127.0.0.1 would otherwise
    /// read every position with the rights of its visitor. The port may be that of a tunnel.
    static func isLocal(host: String?) -> Bool {
        guard let host = host?.lowercased() else { return false }
        let name =
            host.hasPrefix("[")
            ? host.prefix(through: host.firstIndex(of: "]") ?? host.startIndex) : host.prefix { $0 != ":" }
        let port = host.dropFirst(name.count)
        let isPort = port.isEmpty || (port.first == ":" && port.dropFirst().allSatisfy { $0.isASCII && $0.isNumber })
        return isPort && ["127.0.0.1", "localhost", "[::1]"].contains(String(name))
    }
}
