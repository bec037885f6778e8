import Protocols

/// What to do about a failure whose words say enough, for people.
package enum FailureCure {
    private static let noTLS =
        "this port does not speak TLS: check the port (http:// or mqtt:// only for a server on your own network)"

    /// - Parameter credential: where the credential is that may be refused, as in "check the token in /etc/waypost/own.token"; nil = there
    ///   is none.
    /// - Parameter hasWorked: the server has accepted something over this address, so that its port and scheme are right.
    /// - Returns: nil = nothing is known.
    package static func words(
        for failure: TransportFailure, _ settings: EndpointSettings, credential: String? = nil, hasWorked: Bool = false
    ) -> String? {
        let text = failure.message
        let isPlainHTTP = settings.baseURL.hasPrefix("http:")
        func has(_ words: String) -> Bool { text.firstOccurrence(of: words) != nil }
        switch failure {
        case .tls where has("self-signed certificate in certificate chain"), .tls where has("local issuer certificate"):
            return "if it is a server of your own, name the certificate of its authority: tls = { ca = \"PATH\" }"
        case .tls where has("self-signed certificate") || has("self signed certificate"):
            return
                "if it is a server of your own, name its certificate: tls = { ca = \"PATH\" }, after its SHA-256 is that of the "
                + "server's own file: \(showsCertificate(text))"
        case .tls where has("subject name"):
            return "base_url has to name the server as its certificate does"
        case .tls where has("wrong version number") || has("packet length too long") || has("record layer failure"):
            return noTLS
        // It may have closed the connection over a first packet that it does not understand.
        case .tls where has("unexpected eof") || has("SSL_ERROR_SYSCALL") || has("Connection reset by peer"):
            return hasWorked ? nil : "perhaps " + noTLS
        case _ where settings.baseURL.hasPrefix("mqtts") && has("Recv failure: Connection reset by peer"):
            return "perhaps " + noTLS
        case .connect where has("Connection refused"): return nothingListens(settings)
        case .connect where has("user name or password is wrong") || has("not authorised"):
            return credential
                ?? "the broker wants a user: auth = { kind = \"basic\", user = \"NAME\", password = \"file:PATH\" }"
        case .broken where isPlainHTTP && has("the answer is not HTTP"): return mayBeTLS(settings)
        case .closedWithoutReply where isPlainHTTP && !hasWorked,
            .broken where isPlainHTTP && !hasWorked && has("the connection broke"):
            return mayBeTLS(settings)
        case _
        where settings.baseURL.hasPrefix("mqtt:") && !hasWorked
            && (has("closed the connection before CONNACK") || has("the connection broke")):
            return mayBeTLS(settings)
        case .timeout where has("no CONNACK"), .connect where has("no CONNACK"),
            .connect where has("with which no packet begins"),
            .broken where has("with which no packet begins"):
            return "is this the port of a broker: usually 1883, with mqtts:// 8883?"
        default: return nil
        }
    }

    /// A server that speaks TLS ends what begins otherwise, with an alert or without a word.
    private static func mayBeTLS(_ settings: EndpointSettings) -> String {
        let scheme = settings.baseURL.hasPrefix("mqtt") ? "mqtts" : "https"
        return "perhaps this port speaks TLS: then base_url has to begin with \(scheme)://"
    }

    /// - Parameter text: begins with the peer.
    private static func showsCertificate(_ text: String) -> String {
        let peer = text.firstOccurrence(of: ": ").map { String(text[..<$0.lowerBound]) } ?? "HOST:PORT"
        return "openssl s_client -connect \(peer) </dev/null | openssl x509 -noout -fingerprint -sha256"
    }

    /// The usual ports of servers by the beginnings of their profiles.
    private static let ports = [("traccar", "5055"), ("home-assistant", "8123"), ("influx", "8086")]

    private static func nothingListens(_ settings: EndpointSettings) -> String {
        let port =
            settings.baseURL.hasPrefix("mqtt")
            ? "1883, with TLS 8883" : ports.first { settings.profile.name.hasPrefix($0.0) }?.1
        return "does the server run, and does it listen there?"
            + (port.map { " Usual for \(settings.profile.name): \($0)" } ?? "")
    }

    /// Of an answer that refuses.
    package static func words(status: Int, _ body: [UInt8], _ settings: EndpointSettings) -> String? {
        guard status >= 400 else { return nil }
        if let cure = ServerWords.first(of: body, status: status).flatMap(ServerWords.cure) { return cure }
        guard status == 400 || status == 404, settings.profile.name.hasPrefix("traccar") else { return nil }
        return "add the device \(settings.device) in Traccar, or set device to the identifier that it has there"
    }
}
