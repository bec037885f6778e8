import Foundation
import Glibc
import Synchronization

/// A server on loopback whose every connection follows a script, each on a thread of its own.
package final class ScriptedServer: Sendable {
    package struct Request: Sendable {
        /// Request line and headers, without the empty line.
        package var head: [String]
        package var body: [UInt8]
        /// Counted from 1 in the order of accepting.
        package var connection: Int

        package func header(_ name: String) -> String? {
            head.dropFirst().first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { String($0.dropFirst(name.count + 1)).trimmingCharacters(in: .whitespaces) }
        }
    }

    package let port: Int
    private let listener: Int32
    private let record = Record()

    /// What the threads write and the test reads; the threads outlive the server.
    private final class Record: Sendable {
        let requests = Mutex<[Request]>([])
        let connections = Mutex(0)
    }

    package var requests: [Request] { record.requests.withLock { $0 } }
    package var connections: Int { record.connections.withLock { $0 } }
    package var url: String { "http://127.0.0.1:\(port)" }

    package init(_ script: @escaping @Sendable (ScriptedConnection) -> Void) throws {
        (listener, port) = try listenOnLoopback(backlog: 16)
        Thread.detachNewThread { [listener, record] in
            while true {
                let descriptor = accept(listener, nil, nil)
                if descriptor < 0 {
                    Glibc.close(listener)
                    return
                }
                let number = record.connections.withLock { count in
                    count += 1
                    return count
                }
                Thread.detachNewThread {
                    let connection = ScriptedConnection(descriptor, number) { request in
                        record.requests.withLock { $0.append(request) }
                    }
                    script(connection)
                    connection.close()
                }
            }
        }
    }

    /// One canned answer to every request, on kept connections.
    package convenience init(answering reply: String) throws {
        try self.init { connection in
            while connection.request() != nil { connection.send(reply) }
        }
    }

    deinit {
        // Wakes the accepting thread, which then closes: closed here, its number might already be another's listener.
        shutdown(listener, Int32(SHUT_RDWR))
    }
}

/// The server's end of one connection, used by one thread.
package final class ScriptedConnection {
    package let number: Int
    private let descriptor: Int32
    private let note: (ScriptedServer.Request) -> Void
    private var buffer: [UInt8] = []
    private var isOpen = true

    init(_ descriptor: Int32, _ number: Int, note: @escaping (ScriptedServer.Request) -> Void) {
        self.descriptor = descriptor
        self.number = number
        self.note = note
    }

    /// The next request, nil when the client closes.
    package func request() -> ScriptedServer.Request? {
        let blankLine = Array("\r\n\r\n".utf8)
        while buffer.firstRange(of: blankLine) == nil { if !receive() { return nil } }
        guard let end = buffer.firstRange(of: blankLine) else { return nil }
        let head = String(decoding: buffer[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        var request = ScriptedServer.Request(head: head, body: [], connection: number)
        let length = request.header("Content-Length").flatMap { Int($0) } ?? 0
        while buffer.count < end.upperBound + length { if !receive() { return nil } }
        request.body = Array(buffer[end.upperBound..<(end.upperBound + length)])
        buffer.removeFirst(end.upperBound + length)
        note(request)
        return request
    }

    /// Waits for the client to close; what it sends until then is dropped.
    package func waitForEnd() { while receive() { buffer = [] } }

    /// Waits for the first byte of a request.
    package func waitForBytes() { _ = receive() }

    /// False when the client has gone.
    @discardableResult
    package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    @discardableResult
    package func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count <= 0 { return false }
            sent += count
        }
        return true
    }

    /// The client has ended the connection, perhaps behind bytes that were not read (POLLRDHUP).
    package var hasGone: Bool {
        var look = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&look, 1, 0) > 0
    }

    package func close() {
        if isOpen { Glibc.close(descriptor) }
        isOpen = false
    }

    /// Closes with a reset instead of an orderly end.
    package func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    private func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65536)
        let count = read(descriptor, &chunk, chunk.count)
        if count <= 0 { return false }
        buffer.append(contentsOf: chunk.prefix(count))
        return true
    }
}

/// Descriptors of this process whose peer is that port of loopback.
package func descriptorsConnected(to port: Int) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.compactMap { Int32($0) }.count { descriptor in
        let (isConnected, peer) = withLoopback(0) { address, length in
            getpeername(descriptor, address, &length) == 0 && Int32(address.pointee.sa_family) == AF_INET
        }
        return isConnected && peer == port
    }
}
