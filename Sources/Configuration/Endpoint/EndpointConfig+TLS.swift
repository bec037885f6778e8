import Glibc
import Hash
import Network
import Profiles

extension EndpointConfig {
    /// A PEM file that the configuration names, looked into.
    private struct NamedPEM {
        var reference: Secret.Reference
        /// nil where it cannot be known outside of the unit.
        var bytes: [UInt8]?
    }

    /// `[endpoint.tls]`
    mutating func readTLS(_ table: TableReader) {
        var tls = EndpointTLS()
        var authorities: NamedPEM?
        var certificate: NamedPEM?
        var key: NamedPEM?
        table.read("ca", into: &authorities, as: Self.pem(isPrivate: false, mayBePath: true))
        table.read("client_cert", into: &certificate, as: Self.pem(isPrivate: false, mayBePath: false))
        table.read("client_key", into: &key, as: Self.pem(isPrivate: true, mayBePath: false))
        table.read("pins", into: &tls.pins, as: .pins)
        guard table.isWritten else { return }
        for (mine, other) in [("client_cert", "client_key"), ("client_key", "client_cert")]
        where table.has(mine) && !table.has(other) {
            table.report(other, "found nothing, expected it together with \(mine)")
        }
        if let bytes = authorities?.bytes, !ClientCertificate.holdsCertificate(bytes) {
            table.report("ca", "found no certificate in it, expected a PEM file of authorities")
        }
        if let certificate = certificate?.bytes, let key = key?.bytes {
            switch ClientCertificate.problem(certificate: certificate, key: key) {
            case .noCertificate: table.report("client_cert", "found no certificate in it, expected a PEM file")
            case .noKey:
                table.report(
                    "client_key", "found no key in it, or one with a password, expected a PEM file without one")
            case .otherKey:
                table.report("client_key", "found the key of another certificate, expected that of client_cert")
            case nil: break
            }
        }
        tls.authorities = authorities?.reference
        tls.certificate = certificate?.reference
        tls.key = key?.reference
        self.tls = tls
    }

    private static func pem(isPrivate: Bool, mayBePath: Bool) -> ValueForm<NamedPEM> {
        let path = mayBePath ? "the absolute path of a PEM file, " : ""
        return ValueForm(
            expected: path + "\"credential:NAME\" or \"file:PATH\"",
            read: { node, environment throws(Mistake) in
                guard case .string(let raw) = node.value else { throw Mistake() }
                let reference = mayBePath && raw.hasPrefix("/") ? .file(raw) : Secret.reference(raw)
                guard let reference else { throw Mistake() }
                if case .environment = reference { throw Mistake() }
                let file = Secret.file(of: reference, environment, isPrivate: isPrivate, bytesMax: 4 << 20)
                return NamedPEM(reference: reference, bytes: try file.get())
            },
            render: { $0.reference.asTOML }, isSecret: isPrivate)
    }
}

extension ValueForm where Value == [String] {
    /// Hashes of public keys, as `openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` gives them.
    fileprivate static var pins: ValueForm {
        ValueForm(
            expected: "up to 8 hashes of public keys: the base64 of 32 bytes, in quotes and brackets",
            read: { node, _ throws(Mistake) in
                try node.elements(1...8) { element throws(Mistake) in
                    guard case .string(let raw) = element.value else { throw Mistake() }
                    let pin = raw.hasPrefix("sha256//") ? String(raw.dropFirst(8)) : raw
                    guard Base64.decode(pin)?.count == 32 else { throw Mistake(found: raw.asTOML.shortened) }
                    return pin
                }
            },
            render: { $0.isEmpty ? "" : $0.asTOML })
    }
}
