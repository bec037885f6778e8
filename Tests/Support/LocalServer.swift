import Foundation

/// A TCP server on loopback that does what the test says: a receiver on the network, or an endpoint out of its mind.
package final class LocalServer {
    package let port: Int
    private var listener: Int32 = -1
    private var connection: Int32 = -1

    /// - Parameter port: 0 lets the system choose.
    package init(port: Int = 0) throws {
        (listener, self.port) = try listenOnLoopback(port: port, backlog: 8)
    }

    /// Waits for the next client; the one before is cut off.
    package func accept() throws {
        hangUp()
        var wait = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, Int32(20_000 * RunningProgram.slack)) == 1 else {
            throw RunningProgram.Unfinished(text: "no client came")
        }
        connection = accept4(listener)
    }

    /// - Returns: bytes that the client took before it hung up.
    @discardableResult
    package func send(_ bytes: [UInt8]) -> Int {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(connection, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { break }
            sent += count
        }
        return sent
    }

    /// The HTTP request that the client sends, or what there is of it when the client hangs up.
    package func receive() -> [UInt8] {
        TestSupport.receive(from: connection, Self.isWhole)
    }

    /// That many bytes, or fewer when the client hangs up or sends nothing for a while.
    package func read(_ count: Int) -> [UInt8] {
        var received: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        var wait = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
        while received.count < count, poll(&wait, 1, Int32(10_000 * RunningProgram.slack)) == 1 {
            let more = recv(connection, &chunk, min(chunk.count, count - received.count), 0)
            guard more > 0 else { break }
            received += chunk[..<more]
        }
        return received
    }

    private static func isWhole(_ request: [UInt8]) -> Bool {
        guard let end = request.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
        let head = String(decoding: request[..<end.lowerBound], as: UTF8.self).lowercased()
        let length = head.components(separatedBy: "\r\ncontent-length:").dropFirst().first?.prefix { $0 != "\r\n" }
        return request.count - end.upperBound
            >= length.flatMap { Int($0.trimmingCharacters(in: .whitespaces)) } ?? 0
    }

    package func hangUp() {
        if connection >= 0 { close(connection) }
        connection = -1
    }

    /// Stops listening.
    package func stop() {
        hangUp()
        if listener >= 0 { close(listener) }
        listener = -1
    }

    deinit { stop() }

    private func accept4(_ listener: Int32) -> Int32 {
        let descriptor = Glibc.accept(listener, nil, nil)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        return descriptor
    }
}
