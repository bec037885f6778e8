import ArgumentParser
import Daemon
import Inspect
import WaypostHost

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode", abstract: "Decode a log into fixes.",
        discussion: """
            One line for each measurement of the receiver; measurements without a fix have no position. \
            Bad sentences are counted, never fatal.

              waypost decode drive.nmea
              cat /dev/ttyACM0 | waypost decode - --format jsonl
            """)

    @Argument(help: "A log in NMEA, gpsd's JSON or GPX, or - for standard input.", completion: .file())
    var log = "-"

    @Option(help: "text, jsonl (an object per measurement) or none (only the counts).")
    var format = DecodeLog.Format.text

    func run() throws {
        do throws(LogFailure) {
            notify(try DecodeLog().run(log: log, format: format))
        } catch {
            throw fail(error)
        }
    }
}

extension DecodeLog.Format: ExpressibleByArgument {}
