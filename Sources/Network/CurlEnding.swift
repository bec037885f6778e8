import CCurl
import Glibc
import Profiles
import Protocols

/// What a code of libcurl means for a connection, in words for people.
struct CurlEnding {
    private let code: CURLcode
    /// The handle that it is of; nil where it is gone.
    private let easy: UnsafeMutableRawPointer?
    private let peer: Peer
    /// What `CURLOPT_ERRORBUFFER` was set to.
    private let errorText: UnsafeMutablePointer<CChar>
    private let isClockTrusted: () -> Bool

    init(
        _ code: CURLcode, easy: UnsafeMutableRawPointer?, peer: Peer, errorText: UnsafeMutablePointer<CChar>,
        isClockTrusted: @escaping () -> Bool
    ) {
        self.code = code
        self.easy = easy
        self.peer = peer
        self.errorText = errorText
        self.isClockTrusted = isClockTrusted
    }

    var failure: TransportFailure {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            .resolve("\(peer): the name \(peer.host) cannot be resolved")
        case CURLE_COULDNT_CONNECT:
            isRefused
                ? .connect("\(peer): \(systemError ?? "no connection")")
                : .unreachable("\(peer): \(systemError ?? "no connection")")
        case CURLE_OPERATION_TIMEDOUT:
            .timeout("\(peer): timed out")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED:
            tlsFailure
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            .tls("\(peer): the key of its certificate matches none of the pins")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            alert ?? .broken("\(peer): the connection broke\(systemError.map { ": \($0)" } ?? "")")
        default:
            .broken("\(peer): \(String(cString: curl_easy_strerror(code)))")
        }
    }

    /// The server refuses the certificate of this device, or wants one; nil = it did not say so. By TLS 1.3 that comes after the
    /// handshake, so that the connection is there and breaks.
    var alert: TransportFailure? {
        ServerWords.alert(in: String(cString: errorText)).map { .tls("\(peer): \($0)") }
    }

    /// Words for the last error number; nil when there was none.
    var systemError: String? { errorNumber.map { String(cString: strerror($0)) } }

    private var errorNumber: Int32? {
        var number = 0
        guard let easy, waypost_curl_get_long(easy, CURLINFO_OS_ERRNO, &number) == CURLE_OK, number > 0 else {
            return nil
        }
        return Int32(truncatingIfNeeded: number)
    }

    /// The host has answered, and wants no connection.
    private var isRefused: Bool { errorNumber == ECONNREFUSED || errorNumber == ECONNRESET }

    /// A device without a battery-backed clock checks every certificate in the wrong year.
    private var tlsFailure: TransportFailure {
        var verdict = 0
        let notYetValid = 9
        let expired = 10
        guard let easy, waypost_curl_get_long(easy, CURLINFO_SSL_VERIFYRESULT, &verdict) == CURLE_OK,
            verdict == notYetValid || verdict == expired
        else { return alert ?? .tls("\(peer): \(detail)") }
        let text = "\(peer): \(detail); is the clock of this device right?"
        return isClockTrusted() ? .tls(text) : .clock(text)
    }

    /// OpenSSL's own words ("certificate has expired"), which hold names but no URL.
    private var detail: String {
        errorText.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
    }
}
