import Agent
import ArgumentParser
import ControlProtocol
import EventLoop

/// Which running daemon a command speaks to.
struct DaemonOptions: ParsableArguments {
    @Option(help: "The configuration that names the control socket.", completion: .file(extensions: ["toml"]))
    var config = ConfigurationFile.standardPath

    @Option(help: "The control socket itself, instead of the one in the configuration.", completion: .file())
    var socket: String?

    /// - Throws: `ExitCode` 2 when no daemon answers, which has been said.
    func ask(_ request: String, timeoutSeconds: Int = 5) throws -> [UInt8] {
        let path = try socket ?? ConfigurationFile.load(config).config.control.socket
        do throws(SystemError) {
            return try ControlClient(path: path, timeoutSeconds: timeoutSeconds).ask(request)
        } catch {
            printError("waypost: no daemon answers: \(error)")
            throw ExitCode(2)
        }
    }
}
