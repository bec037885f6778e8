import Glibc

/// Where the numbers of `status` are offered to Prometheus.
package struct MetricsConfig: Hashable, Sendable {
    /// Served as `GET /metrics`; nil = not at all.
    package var listen: Address?
    /// A file for node_exporter, replaced once a minute while values change; nil = none.
    package var textfile: String?

    /// An address in digits, and a port.
    package struct Address: Hashable, Sendable, CustomStringConvertible {
        /// Without brackets.
        package var host: String
        package var port: UInt16

        /// `127.0.0.1:9477`, `[::1]:9477`; nil for anything else.
        package init?(_ text: String) {
            guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0
            else { return nil }
            var host = text[..<colon]
            let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
            if isBracketed { host = host.dropFirst().dropLast() }
            var space = in6_addr()
            guard inet_pton(isBracketed ? AF_INET6 : AF_INET, String(host), &space) == 1 else { return nil }
            (self.host, self.port) = (String(host), port)
        }

        package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

        fileprivate var isOfThisHost: Bool { host.hasPrefix("127.") || host == "::1" }
    }

    init(reading table: TableReader) {
        table.read("listen", into: &listen, as: .address)
        table.read(
            "textfile", into: &textfile,
            as: .text("the absolute path of a file that ends in .prom") {
                $0.hasPrefix("/") && $0.hasSuffix(".prom") ? nil : Mistake()
            })
        if let listen, !listen.isOfThisHost {
            table.warn(
                "listen", "found \(listen), where anyone who reaches this host reads the metrics without a password")
        }
    }
}

extension ValueForm where Value == MetricsConfig.Address {
    fileprivate static var address: ValueForm {
        ValueForm(
            expected: "an address in digits and a port, such as \"127.0.0.1:9477\"",
            read: { node, environment throws(Mistake) in
                guard let address = MetricsConfig.Address(try node.text(environment)) else { throw Mistake() }
                return address
            },
            render: { $0.description.asTOML })
    }
}
