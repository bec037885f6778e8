import Glibc

/// Gives `body` the address of a port of this machine.
package func withLoopback<Result>(
    _ port: Int, _ body: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Result
) -> (result: Result, port: Int) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = UInt16(port).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
    return (result, Int(UInt16(bigEndian: address.sin_port)))
}

/// Gives `body` the address of a Unix socket; the name of an abstract one begins with a zero.
package func withUnixAddress<Result>(
    _ name: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(2 + name.count)) }
    }
}

/// A connection to a port of this machine; nil where nobody listens.
package func connectToLoopback(_ port: Int) -> Int32? {
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if withLoopback(port, { connect(client, $0, $1) == 0 }).result { return client }
    close(client)
    return nil
}

/// A port of this machine that listens; 0 lets the system choose.
package func listenOnLoopback(port: Int = 0, backlog: Int32) throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, 4)
    let bound = withLoopback(port) { address, length in
        bind(descriptor, address, length) == 0 && listen(descriptor, backlog) == 0
            && getsockname(descriptor, address, &length) == 0
    }
    guard bound.result else { throw RunningProgram.Unfinished(text: "no server: \(String(cString: strerror(errno)))") }
    return (descriptor, bound.port)
}

/// What comes on a socket until `isWhole`; less when the other end hangs up or sends nothing for a while.
func receive(from socket: Int32, _ isWhole: ([UInt8]) -> Bool) -> [UInt8] {
    var received: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    var wait = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    while !isWhole(received), poll(&wait, 1, Int32(10_000 * RunningProgram.slack)) == 1 {
        let count = recv(socket, &chunk, chunk.count, 0)
        guard count > 0 else { break }
        received += chunk[..<count]
    }
    return received
}

/// The whole answer of an HTTP server of this machine; nil where nobody listens. Without URLSession, whose library not every
/// bundle of tests loads.
package func answer(of port: Int, to path: String) -> String? {
    guard let client = connectToLoopback(port) else { return nil }
    defer { close(client) }
    let request = "GET \(path) HTTP/1.1\r\nHost: localhost:\(port)\r\nConnection: close\r\n\r\n"
    _ = send(client, request, request.utf8.count, Int32(MSG_NOSIGNAL))
    return String(decoding: receive(from: client) { _ in false }, as: UTF8.self)
}
