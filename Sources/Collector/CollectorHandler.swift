import FlyingFox
import Foundation

/// HTTP on one side, the intake and the page on the other.
struct CollectorHandler: HTTPHandler {
    let intake: Intake
    let page: LivePage

    func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
        switch request.method {
        // What can be read is for this machine alone. Uploads may come under any name: those of tests do.
        case .GET where !LivePage.isLocal(host: request.headers[.host]):
            return response(421, [:], "{\"error\":\"ask for 127.0.0.1 or localhost\"}\n")
        case .GET where request.path == "/stats":
            let text = await intake.statistics
            return HTTPResponse(
                statusCode: .ok, headers: [.contentType: "application/json"], body: Data(text.utf8))
        case .GET:
            if let page = page.answer(request) { return page }
            if let answer = await intake.remote(.GET, request.path, [], headers: request.headers) {
                return response(answer)
            }
            return response(404, [:], "{\"error\":\"GET / is the page, GET /stats the counts\"}\n")
        // Only a page in a browser sends an origin: no site may upload through the browser of whoever tests.
        case .POST where request.headers[HTTPHeader("Origin")] != nil:
            return response(403, [:], "{\"error\":\"web pages may not upload\"}\n")
        case .POST where isRemote(request.path):
            return await remote(request)
        case .POST:
            return await post(request)
        case .PUT where request.headers[HTTPHeader("Origin")] == nil:
            return await remote(request)
        default:
            return response(405, ["Allow": "GET, POST, PUT"], "{\"error\":\"POST a batch, or GET / or /stats\"}\n")
        }
    }

    private func isRemote(_ path: String) -> Bool {
        ["commands", "reported"].contains(Intake.remotePath(path)?.subject)
    }

    /// Settings and commands are sent by whoever tests, on this machine, and by no page.
    private func remote(_ request: HTTPRequest) async -> HTTPResponse {
        guard LivePage.isLocal(host: request.headers[.host]) else {
            return response(421, [:], "{\"error\":\"send it to 127.0.0.1 or localhost\"}\n")
        }
        guard let body = await wholeBody(request),
            let answer = await intake.remote(request.method, request.path, body, headers: request.headers)
        else {
            let requests = "PUT /settings/DEVICE or /reported/DEVICE, POST /commands/DEVICE or /reported/DEVICE"
            return response(404, [:], "{\"error\":\"\(requests)\"}\n")
        }
        return response(answer)
    }

    private func post(_ request: HTTPRequest) async -> HTTPResponse {
        guard let body = await wholeBody(request) else {
            cutConnection(to: request.remoteAddress)
            return response(413, [:], "")
        }
        let answer = await intake.post(
            body, headers: request.headers, peer: request.remoteAddress.map { "\($0)" } ?? "",
            headBytes: headBytes(request))
        switch answer {
        case .reply(let status, let headers, let text):
            return response(status, headers, text)
        case .hang:
            try? await Task.sleep(for: .seconds(24 * 3600))
        case .cut:
            break
        }
        cutConnection(to: request.remoteAddress)
        return response(500, [:], "")
    }

    /// Nil when it is too long or breaks off.
    private func wholeBody(_ request: HTTPRequest) async -> [UInt8]? {
        var body: [UInt8] = []
        do {
            for try await piece in request.bodySequence {
                body.append(contentsOf: piece)
                if body.count > Intake.bodyLimit { return nil }
            }
        } catch {
            return nil
        }
        return body
    }

    private func headBytes(_ request: HTTPRequest) -> Int {
        let line =
            request.method.rawValue.utf8.count + request.target.rawValue.utf8.count + " HTTP/1.1\r\n".utf8.count + 1
        return request.headers.reduce(line + 2) { $0 + $1.key.rawValue.utf8.count + $1.value.utf8.count + 4 }
    }

    private func response(_ answer: SettingsStore.Answer) -> HTTPResponse {
        response(answer.status, answer.headers, String(decoding: answer.body, as: UTF8.self))
    }

    private func response(_ status: Int, _ headers: [String: String], _ text: String) -> HTTPResponse {
        let headers = Dictionary(uniqueKeysWithValues: headers.map { (HTTPHeader($0), $1) })
        return HTTPResponse(
            statusCode: HTTPStatusCode(status, phrase: "Status"), headers: HTTPHeaders(headers), body: Data(text.utf8))
    }
}

/// Shuts the socket that leads to the peer. FlyingFox answers every request and hands out no socket, so it is found by
/// its peer; while a request is being handled, it is open and the only one.
private func cutConnection(to peer: HTTPRequest.Address?) {
    guard case .ip4(_, let port) = peer else { return }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    for descriptor in names.compactMap({ Int32($0) }) {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let known = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
        }
        if known, Int32(address.sin_family) == AF_INET, UInt16(bigEndian: address.sin_port) == port {
            shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }
}
