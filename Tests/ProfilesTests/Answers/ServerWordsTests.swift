import Testing

@testable import Profiles

@Suite struct ServerWordsTests {
    /// Of nginx 1.22 as it was seen, and others.
    static let bodies: [(Int, String, String?)] = [
        (
            400,
            "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>\r\n<body>\r\n",
            "The plain HTTP request was sent to HTTPS port"
        ), (413, "<html><head><title>413 Request Entity Too Large</title></head>", "Request Entity Too Large"),
        (400, "Client sent an HTTP request to an HTTPS server.\n", "Client sent an HTTP request to an HTTPS server."),
        (500, "<html><body><h1>Oops</h1>\n<p>more", "Oops"), (422, "\n{\n  \"error\": \"no\"\n}", "\"error\": \"no\""),
        (500, "", nil), (500, "<html><br/></html>", nil), (500, "a\0b", nil),
        (400, "\u{1B}[2Jx\u{202E}", "\\x1b[2Jx"),
        (400, String(repeating: "ы", count: 300), String(repeating: "ы", count: 119) + "…"),
    ]

    @Test func theTitleOrTheFirstLineIsShown() {
        for (status, body, words) in Self.bodies {
            let found = ServerWords.first(of: Array(body.utf8), status: status)
            #expect(words == nil ? found == nil : found?.hasPrefix(words ?? "") == true, "\(body): \(found ?? "-")")
            #expect(found.map { $0.count <= 120 } ?? true)
        }
    }

    @Test func aKnownRefusalHasItsCure() {
        #expect(ServerWords.cure(for: "The plain HTTP request was sent to HTTPS port")?.contains("https://") == true)
        #expect(ServerWords.cure(for: "No required SSL certificate was sent")?.contains("client_cert") == true)
        #expect(ServerWords.cure(for: "Bad Gateway") == nil)
    }
}
