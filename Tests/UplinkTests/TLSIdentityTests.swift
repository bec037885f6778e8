import Delivery
import Foundation
import Testing

@testable import Uplink

@Suite struct TLSIdentityTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "waypost-mtls-\(UUID().uuidString)")

    private func inDirectory(_ body: () throws -> Void) throws {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try body()
    }

    private func page(_ loop: PollLoop, _ request: UplinkRequest) throws -> String {
        String(decoding: try loop.reply(request).body, as: UTF8.self)
    }

    @Test func showsItsCertificateToAServerThatWantsOne() throws {
        try inDirectory {
            let client = try TLSServer.identity("van-7", in: directory)
            let server = try TLSServer(name: "IP:127.0.0.1", options: ["-Verify", "1", "-CAfile", client.certificate])
            var request = server.request
            request.tls = TLSSettings(
                authorities: server.certificate, certificate: client.certificate, key: client.key)
            #expect(try page(PollLoop(), request).contains("Subject: CN=van-7"))

            request.tls = TLSSettings(authorities: server.certificate)
            #expect(try PollLoop().outcome(request).reply == nil)
        }
    }

    /// One server, three ways to meet it: none may ride on the session of another, and each resumes its own.
    @Test func neverSharesASessionBetweenIdentities() throws {
        try inDirectory {
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
        #expect(failure.word == "tls")
        #expect(failure.message.hasSuffix("matches none of the pins"), "\(failure)")
    }

    @Test func aWrongAuthorityIsRefusedThoughTheUplinkTrustsTheRightOne() throws {
        try inDirectory {
            let stranger = try TLSServer.identity("stranger", in: directory)
            let server = try TLSServer(name: "IP:127.0.0.1")
            let loop = try PollLoop(.init(version: "1", caFile: server.certificate))
            #expect(try loop.reply(server.request).status == 200)
            var request = server.request
            request.tls = TLSSettings(authorities: stranger.certificate)
            #expect(try loop.failure(request).word == "tls")
        }
    }

    @Test func blamesTheClockThatNobodyVouchesFor() throws {
        let server = try TLSServer(name: "IP:127.0.0.1", until: "20210101000000Z")
        let loop = try PollLoop(.init(version: "1", caFile: server.certificate), isClockTrusted: false)
        let failure = try loop.failure(server.request)
        #expect(failure.word == "clock")
        #expect(failure.message.hasSuffix("is the clock of this device right?"), "\(failure)")
    }

    @Test func readsWhenACertificateEndsAndWhetherItsKeyFits() throws {
        try inDirectory {
            func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
            let one = try TLSServer.identity("one", in: directory)
            let two = try TLSServer.identity("two", in: directory)
            let end = try #require(ClientCertificate.validUntil(try bytes(one.certificate)))
            #expect(abs(Double(end) - Date().timeIntervalSince1970 - 30 * 86_400) < 300)
            #expect(ClientCertificate.dates(try bytes(one.certificate))?.from == end - 30 * 86_400)
            let (certificate, key) = (try bytes(one.certificate), try bytes(one.key))
            #expect(ClientCertificate.problem(certificate: certificate, key: key) == nil)
            #expect(ClientCertificate.problem(certificate: certificate, key: try bytes(two.key)) == .otherKey)
            #expect(ClientCertificate.problem(certificate: certificate, key: certificate) == .noKey)
            #expect(ClientCertificate.problem(certificate: key, key: key) == .noCertificate)
            #expect(ClientCertificate.problem(certificate: [], key: []) == .noCertificate)
        }
    }
}
