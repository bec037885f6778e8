import Delivery
import Foundation
import Testing

@testable import Uplink

/// Against the server of the openssl command, which ca-certificates brings along.
@Suite struct TLSTests {
    @Test func trustsTheGivenAuthority() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let loop = try PollLoop(.init(version: "1", caFile: server.certificate))
        let outcome = try loop.outcome(server.request)
        #expect(outcome.reply?.status == 200, "\(outcome)")
        let again = try loop.reply(server.request)
        let page = String(decoding: again.body, as: UTF8.self)
        #expect(again.status == 200)
        #expect(page.contains("Reused, TLSv1.3"))
    }

    @Test func refusesAnUnknownAuthority() throws {
        let server = try TLSServer(name: "IP:127.0.0.1")
        let failure = try PollLoop().failure(server.request)
        #expect(failure.word == "tls")
        #expect(failure.message.contains("certificate"))
    }

    @Test func refusesACertificateOfAnotherName() throws {
        let server = try TLSServer(name: "DNS:elsewhere.example")
        let failure = try PollLoop(.init(version: "1", caFile: server.certificate)).failure(server.request)
        #expect(failure.word == "tls", "\(failure)")
        #expect(failure.message.contains("127.0.0.1"))
    }

    @Test func pointsToTheClockWhenTheCertificateIsOutOfDate() throws {
        let server = try TLSServer(name: "IP:127.0.0.1", until: "20210101000000Z")
        let failure = try PollLoop(.init(version: "1", caFile: server.certificate)).failure(server.request)
        #expect(failure.word == "tls")
        #expect(failure.message.hasSuffix("is the clock of this device right?"), "\(failure)")
    }

    @Test func refusesAVersionBelow12() throws {
        let server = try TLSServer(name: "IP:127.0.0.1", options: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        let failure = try PollLoop(.init(version: "1", caFile: server.certificate)).failure(server.request)
        #expect(failure.word == "tls")
    }
}

private final class TLSServer {
    let certificate: String
    let request: UplinkRequest
    private let directory: URL
    private let process = Process()

    init(name: String, until: String = "20491231000000Z", options: [String] = []) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "waypost-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        certificate = directory.appending(path: "cert.pem").path
        let key = directory.appending(path: "key.pem").path
        let openssl = URL(fileURLWithPath: "/usr/bin/openssl")
        // `openssl ca`, since `openssl req` makes no certificate that is already out of date.
        let settings = """
            [ca]
            default_ca = test
            [test]
            database = \(directory.path)/index.txt
            serial = \(directory.path)/serial
            new_certs_dir = \(directory.path)
            default_md = sha256
            policy = policy
            x509_extensions = extensions
            [policy]
            commonName = supplied
            [extensions]
            subjectAltName = \(name)
            """
        for (file, text) in [("ca.conf", settings), ("index.txt", ""), ("serial", "01\n")] {
            try Data(text.utf8).write(to: directory.appending(path: file))
        }
        let signing = directory.appending(path: "request.pem").path
        for arguments in [
            [
                "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out",
                signing, "-subj", "/CN=test",
            ],
            [
                "ca", "-batch", "-selfsign", "-notext", "-config", directory.appending(path: "ca.conf").path,
                "-keyfile", key, "-in", signing, "-out", certificate, "-startdate", "20200101000000Z", "-enddate",
                until,
            ],
        ] {
            let making = Process()
            making.executableURL = openssl
            making.arguments = arguments
            making.standardError = FileHandle.nullDevice
            try making.run()
            making.waitUntilExit()
        }

        let output = Pipe()
        process.executableURL = openssl
        process.arguments =
            ["s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-www"] + options
        process.standardInput = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        // It says "ACCEPT 127.0.0.1:port" once it listens.
        var said = ""
        while !said.hasSuffix("\n") || !said.contains("ACCEPT") {
            let data = output.fileHandleForReading.availableData
            if data.isEmpty { break }
            said += String(decoding: data, as: UTF8.self)
        }
        let port = (said.split(separator: ":").last ?? "").trimmingCharacters(in: .whitespacesAndNewlines)
        request = UplinkRequest(method: "GET", url: "https://127.0.0.1:\(port)/", body: [])
    }

    deinit {
        // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and test threads block that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: directory)
    }
}
