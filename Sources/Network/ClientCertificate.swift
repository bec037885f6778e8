import CCrypto
import Protocols

/// Checks a PEM file with a certificate of ours before it is needed.
package enum ClientCertificate {
    /// Why a certificate cannot be used.
    package enum Problem: Error, Hashable, Sendable {
        /// No certificate in PEM.
        case noCertificate
        /// No private key in PEM, or one that a password protects.
        case noKey
        /// A key, but that of another certificate.
        case otherKey
    }

    /// Unix seconds after which the first certificate of the text is not valid any more; nil when there is none.
    package static func validUntil(_ pem: [UInt8]) -> Int64? { dates(pem)?.until }

    /// Of the first certificate of the text; nil when there is none.
    package static func dates(_ pem: [UInt8]) -> CertificateDates? {
        guard let certificate = read(pem, { PEM_read_bio_X509($0, nil, noPassword, nil) }) else { return nil }
        defer { X509_free(certificate) }
        guard let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_TIME_free(epoch) }
        func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
            var (days, seconds): (Int32, Int32) = (0, 0)
            guard let time, ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
            return Int64(days) * 86_400 + Int64(seconds)
        }
        guard let from = seconds(X509_get0_notBefore(certificate)), let until = seconds(X509_get0_notAfter(certificate))
        else { return nil }
        return CertificateDates(from: from, until: until)
    }

    /// What is wrong with a certificate and its key; nil = they fit.
    package static func problem(certificate: [UInt8], key: [UInt8]) -> Problem? {
        guard let certificate = read(certificate, { PEM_read_bio_X509($0, nil, noPassword, nil) }) else {
            return .noCertificate
        }
        defer { X509_free(certificate) }
        guard let key = read(key, { PEM_read_bio_PrivateKey($0, nil, noPassword, nil) }) else { return .noKey }
        defer { EVP_PKEY_free(key) }
        return X509_check_private_key(certificate, key) == 1 ? nil : .otherKey
    }

    /// Whether there is a certificate in the text at all.
    package static func holdsCertificate(_ pem: [UInt8]) -> Bool { validUntil(pem) != nil }

    private static func read<Value>(_ pem: [UInt8], _ body: (OpaquePointer) -> Value?) -> Value? {
        guard pem.count <= Int(Int32.max), let memory = BIO_new_mem_buf(pem, Int32(pem.count)) else { return nil }
        defer {
            BIO_free(memory)
            // nil reports the failure; left in OpenSSL's queue it would count as a failure of a connection.
            ERR_clear_error()
        }
        return body(memory)
    }
}

/// OpenSSL would ask the terminal.
private func noPassword(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { 0 }
