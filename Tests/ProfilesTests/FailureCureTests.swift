import Testing

@testable import Profiles
@testable import Protocols

@Suite struct FailureCureTests {
    @Test(
        arguments: [
            (TransportFailure.tls("h: SSL certificate problem: self-signed certificate"), "waypost", "tls = { ca = "),
            (
                .tls("h: SSL certificate problem: self-signed certificate in certificate chain"), "waypost",
                "of its authority"
            ),
            (.tls("h: SSL certificate problem: unable to get local issuer certificate"), "waypost", "of its authority"),
            (.tls("h: error:0A00010B:SSL routines::wrong version number"), "waypost", "does not speak TLS"),
            (.connect("h:5005: Connection refused"), "traccar-json", "Usual for traccar-json: 5055"),
            (.connect("h:80: Connection refused"), "waypost", "does the server run"),
            (.connect("h:1884: Connection refused"), "waypost-mqtt", "Usual for waypost-mqtt: 1883, with TLS 8883"),
            (
                .connect("the broker refuses the connection: user name or password is wrong"), "waypost-mqtt",
                "the broker wants a user"
            ),
            (.timeout("no CONNACK of the broker in time"), "waypost-mqtt", "1883"),
            (.connect("no CONNACK of the broker in time"), "waypost-mqtt", "1883"),
            (.connect("h:8883: the connection broke: Connection reset by peer"), "waypost-mqtt", "mqtts://"),
            (.tls("h: SSL routines::unexpected eof while reading"), "waypost", "perhaps this port does not speak TLS"),
            (.closedWithoutReply("the broker closed the connection before CONNACK"), "waypost-mqtt", "mqtts://"),
            (.timeout("h: timed out"), "waypost", nil),
            (.tls("h: certificate has expired"), "waypost", nil),
        ] as [(TransportFailure, String, String?)])
    func aFailureThatSaysEnoughHasItsCure(_ failure: TransportFailure, _ profile: String, _ cure: String?) {
        let words = FailureCure.words(for: failure, settings(profile))
        #expect(cure.map { words?.contains($0) == true } ?? (words == nil), "\(words ?? "nil")")
    }

    @Test func traccarSays400OfADeviceThatItDoesNotKnow() {
        #expect(
            FailureCure.words(status: 400, [], settings("traccar"))?.contains("add the device van-7 in Traccar") == true
        )
        #expect(FailureCure.words(status: 400, [], settings("waypost")) == nil)
        #expect(FailureCure.words(status: 503, [], settings("traccar")) == nil)
        let said = Array("<title>400 The plain HTTP request was sent to HTTPS port</title>".utf8)
        #expect(FailureCure.words(status: 400, said, settings("traccar"))?.contains("https://") == true)
    }

    @Test func theCureOfARefusedCredentialSaysWhereItIs() {
        let failure = TransportFailure.connect("the broker refuses the connection: user name or password is wrong")
        let place = "check user van7 and the password in /etc/waypost/mqtt.password"
        #expect(FailureCure.words(for: failure, settings("waypost-mqtt"), credential: place) == place)
        let none = FailureCure.words(for: failure, settings("waypost-mqtt"))
        #expect(none?.contains("auth = { kind = \"basic\"") == true)
    }

    /// A server with TLS answers to plain HTTP with an alert, or closes the connection.
    @Test(arguments: [
        TransportFailure.broken("h:8443: the answer is not HTTP"),
        .closedWithoutReply("h:8443 took the request and closed the connection without an answer"),
        .broken("h:8443: the connection broke before an answer: Connection reset by peer"),
    ]) func plainHTTPToAPortWithTLSIsSuspected(_ failure: TransportFailure) {
        let plain = EndpointSettings(baseURL: "http://h:8443", device: "van-7")
        #expect(FailureCure.words(for: failure, plain)?.contains("base_url has to begin with https://") == true)
        #expect(FailureCure.words(for: failure, settings("waypost")) == nil)
        // It has worked with this address: the port is right, and the link is bad.
        let later = FailureCure.words(for: failure, plain, hasWorked: true)
        #expect((later == nil) == !failure.message.contains("not HTTP"))
    }

    private func settings(_ profile: String) -> EndpointSettings {
        let scheme = profile.hasSuffix("mqtt") ? "mqtt" : "https"
        var settings = EndpointSettings(baseURL: "\(scheme)://h", device: "van-7")
        settings.profile.name = profile
        return settings
    }
}
