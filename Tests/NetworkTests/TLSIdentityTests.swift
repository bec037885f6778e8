import Foundation
import Protocols
import TestSupport
import Testing

@testable import Hash
@testable import Network

@Suite struct TLSIdentityTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private var directory: URL { URL(fileURLWithPath: folder.path) }

    private func page(_ loop: PollLoop, _ request: UplinkRequest) throws -> String {
        String(decoding: try loop.reply(request).body, as: UTF8.self)
    }

    @Test func showsItsCertificateToAServerThatWantsOne() throws {
        let client = try TLSServer.identity("van-7", in: directory)
        let server = try TLSServer(name: "IP:127.0.0.1", options: ["-Verify", "1", "-CAfile", client.certificate])
        var request = server.request
        request.tls = TLSSettings(
            authorities: server.certificate, certificate: client.certificate, key: client.key)
        #expect(try page(PollLoop(), request).contains("Subject: CN=van-7"))

        request.tls = TLSSettings(authorities: server.certificate)
        #expect(try PollLoop().outcome(request).reply == nil)
    }

    /// By an alert, after the handshake (TLS 1.3) or in it. The alert is lost where the server ends the connection sooner than the
    /// request is written.
    @Test(arguments: ["-tls1_3", "-tls1_2"]) func saysWhatARefusalOfItsCertificateMeans(_ version: String) throws {
        let client = try TLSServer.identity("van-7", in: directory)
        let stranger = try TLSServer.identity("stranger", in: directory)
        let server = try TLSServer(
            name: "IP:127.0.0.1",
            options: ["-Verify", "1", "-CAfile", client.certificate, "-verify_return_error", version])
        let loop = try PollLoop()
        var request = server.request
        for (identity, cure) in [(nil, "set client_cert and client_key"), (stranger, "renew client_cert")] {
            request.tls = TLSSettings(
                authorities: server.certificate, certificate: identity?.certificate, key: identity?.key)
            let failures = try (0..<3).map { _ in try loop.failure(request) }
            #expect(failures.contains { $0.word == "tls" && $0.message.contains(cure) }, "\(failures)")
        }
    }

    /// One server, three ways to meet it: none may ride on the session of another, and each resumes its own.
    @Test func neverSharesASessionBetweenIdentities() throws {
        let one = try TLSServer.identity("one", in: directory)
        let two = try TLSServer.identity("two", in: directory)
        let both = directory.appending(path: "both.pem")
        try
            (Data(contentsOf: URL(fileURLWithPath: one.certificate))
            + Data(contentsOf: URL(fileURLWithPath: two.certificate))).write(to: both)
        let server = try TLSServer(
            name: "IP:127.0.0.1", options: ["-verify", "1", "-CAfile", both.path, "-verify_return_error"])
        let loop = try PollLoop()
        var request = server.request
        func visit(_ identity: (certificate: String, key: String)?) throws -> String {
            request.tls = TLSSettings(
                authorities: server.certificate, certificate: identity?.certificate, key: identity?.key)
            return try page(loop, request)
        }
        for round in 0..<2 {
            let pages = [try visit(one), try visit(two), try visit(nil)]
            #expect(pages[0].contains("Subject: CN=one") && !pages[0].contains("Subject: CN=two"))
            #expect(pages[1].contains("Subject: CN=two") && !pages[1].contains("Subject: CN=one"))
            #expect(pages[2].contains("no client certificate"))
            for page in pages { #expect(page.contains("Reused, TLSv1.3") == (round == 1), "round \(round)") }
        }
    }

    @Test func wantsOneOfThePins() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let pin = try TLSServer.pin(server.certificate)
        let other = Base64.encode([UInt8](repeating: 7, count: 32))
        var request = server.request
        request.tls = TLSSettings(authorities: server.certificate, pins: [other, pin])
        let loop = try PollLoop()
        #expect(try loop.reply(request).status == 200)
        // The session of the good pin is no way around the bad one.
        request.tls = TLSSettings(authorities: server.certificate, pins: [other])
        let failure = try loop.failure(request)
        #expect(failure.word == "tls" && failure.message.hasSuffix("matches none of the pins"), "\(failure)")
    }

    @Test func aWrongAuthorityIsRefusedThoughTheUplinkTrustsTheRightOne() throws {
        let stranger = try TLSServer.identity("stranger", in: directory)
        let server = try TLSServer(name: "IP:127.0.0.1")
        let loop = try PollLoop(.init(version: "1", caFile: server.certificate))
        #expect(try loop.reply(server.request).status == 200)
        var request = server.request
        request.tls = TLSSettings(authorities: stranger.certificate)
        #expect(try loop.failure(request).word == "tls")
    }

    @Test func readsWhenACertificateEndsAndWhetherItsKeyFits() throws {
        func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
        let one = try TLSServer.identity("one", in: directory)
        let two = try TLSServer.identity("two", in: directory)
        let (certificate, key) = (try bytes(one.certificate), try bytes(one.key))
        let end = try #require(ClientCertificate.validUntil(certificate))
        let month: Int64 = 30 * 86_400
        #expect(abs(end - Int64(Date().timeIntervalSince1970) - month) < 300)
        #expect(ClientCertificate.dates(certificate)?.from == end - month)
        let pairs: [([UInt8], [UInt8])] = [
            (certificate, key), (certificate, try bytes(two.key)), (certificate, certificate), (key, key), ([], []),
        ]
        let problems = pairs.map { ClientCertificate.problem(certificate: $0, key: $1) }
        #expect(problems == [nil, .otherKey, .noKey, .noCertificate, .noCertificate])
    }
}
