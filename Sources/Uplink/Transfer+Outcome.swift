import CCurl
import Delivery
import Glibc

extension Transfer {
    func outcome(_ code: CURLcode) -> UplinkOutcome {
        outcome(result(code))
    }

    /// The outcome when a time limit has passed: what is known of the answer stands.
    func outcome(expired limit: Limit) -> UplinkOutcome {
        outcome(reply.reply(complete: false).map { .reply($0) } ?? .failed(limit.failure))
    }

    private func outcome(_ result: UplinkOutcome.Result) -> UplinkOutcome {
        UplinkOutcome(
            result, bytesSent: bytesSent, bytesReceived: bytesReceived, newConnection: connectionsOpened > 0,
            peerAddress: peerAddress)
    }

    private var peerAddress: String? {
        var text: UnsafeMutablePointer<CChar>?
        guard let easy, waypost_curl_get_text(easy, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text,
            text.pointee != 0
        else { return nil }
        return String(cString: text)
    }

    private func result(_ code: CURLcode) -> UplinkOutcome.Result {
        reply.reply(complete: code == CURLE_OK).map { .reply($0) } ?? .failed(failure(code))
    }

    private func failure(_ code: CURLcode) -> TransportFailure {
        if let breach = reply.breach { return .broken("\(peer): \(breach.rawValue)") }
        if let status = reply.status, status >= 100 {
            let end = status < 200 ? "with the interim status \(status)" : "within its head (status \(status))"
            return .broken("\(peer): the answer ended \(end)")
        }
        // Half a status line is nothing, though a newer libcurl counts its bytes.
        if bytesReceived > 0, code != CURLE_GOT_NOTHING { return .broken("\(peer): the answer is not HTTP") }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            return .resolve("\(peer): the name \(peer.host) cannot be resolved")
        case CURLE_COULDNT_CONNECT:
            return .connect("\(peer): \(systemError ?? "no connection")")
        case CURLE_OPERATION_TIMEDOUT:
            return .timeout("\(peer): timed out")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED:
            return tlsFailure(detail(code))
        case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
            return .tls("\(peer): the key of its certificate is none of the pins")
        case CURLE_GOT_NOTHING where isFullyWritten:
            return .closedWithoutReply("\(peer) took the request and closed the connection without an answer")
        case CURLE_GOT_NOTHING:
            return .broken("\(peer) closed the connection while the request was being sent")
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
            let moment = isFullyWritten ? "before an answer" : "while the request was being sent"
            return .broken("\(peer): the connection broke \(moment)\(systemError.map { ": \($0)" } ?? "")")
        default:
            return .broken("\(peer): \(String(cString: curl_easy_strerror(code)))")
        }
    }

    /// OpenSSL's own words ("certificate has expired"), which hold names but no URL.
    private func detail(_ code: CURLcode) -> String {
        errorText.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
    }

    private var systemError: String? {
        var number = 0
        guard let easy, waypost_curl_get_long(easy, CURLINFO_OS_ERRNO, &number) == CURLE_OK, number > 0 else {
            return nil
        }
        return String(cString: strerror(Int32(truncatingIfNeeded: number)))
    }

    /// A box without a battery-backed clock meets every certificate in the wrong year.
    private func tlsFailure(_ detail: String) -> TransportFailure {
        var verdict = 0
        let notYetValid = 9
        let expired = 10
        guard let easy, waypost_curl_get_long(easy, CURLINFO_SSL_VERIFYRESULT, &verdict) == CURLE_OK,
            verdict == notYetValid || verdict == expired
        else { return .tls("\(peer): \(detail)") }
        let text = "\(peer): \(detail); is the clock of this device right?"
        return isClockTrusted() ? .tls(text) : .clock(text)
    }
}
