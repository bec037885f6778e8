import Foundation
import Protocols
import TestSupport

@testable import Hash

/// The server of the openssl command, with a certificate of its own making, or a certificate for its client.
final class TLSServer {
    let certificate: String
    let request: UplinkRequest
    private let folder: TemporaryDirectory
    private let process = Process()

    init(name: String, until: String = "20491231000000Z", options: [String] = []) throws {
        folder = try TemporaryDirectory()
        let directory = URL(fileURLWithPath: folder.path)
        certificate = directory.appending(path: "cert.pem").path
        let key = directory.appending(path: "key.pem").path
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
            try Self.openssl(arguments)
        }

        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
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

    /// A certificate for a client, and its key, in files beside those of the server.
    static func identity(_ name: String, in directory: URL) throws -> (certificate: String, key: String) {
        let paths = (
            certificate: directory.appending(path: "\(name).pem").path,
            key: directory.appending(path: "\(name).key").path
        )
        try openssl([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", paths.key,
            "-out", paths.certificate, "-subj", "/CN=\(name)", "-days", "30",
        ])
        return paths
    }

    /// The hash of the public key of a certificate, as pins have it.
    static func pin(_ certificate: String) throws -> String {
        let (text, key) = (certificate + ".pub", certificate + ".der")
        try openssl(["x509", "-in", certificate, "-noout", "-pubkey", "-out", text])
        try openssl(["pkey", "-pubin", "-in", text, "-outform", "der", "-out", key])
        return Base64.encode(SHA256.hash(Array(try Data(contentsOf: URL(fileURLWithPath: key)))))
    }

    private static func openssl(_ arguments: [String]) throws {
        let making = Process()
        making.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
        making.arguments = arguments
        making.standardError = FileHandle.nullDevice
        try making.run()
        making.waitUntilExit()
    }

    deinit {
        // Not SIGTERM: a child inherits the signal mask of the thread that starts it, and test threads block that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
