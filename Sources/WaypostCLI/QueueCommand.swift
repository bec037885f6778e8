import Agent
import ArgumentParser
import Delivery
import Outbox
import Positioning

struct Queue: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what waits to be uploaded.",
        discussion: """
            Reads the queue beside a running daemon, or without one. It changes nothing.

              waypost queue                  how much waits, for whom, since when
              waypost queue list --count 20  the oldest rows
            """,
        subcommands: [Show.self, List.self], defaultSubcommand: Show.self)

    struct Options: ParsableArguments {
        @Option(help: "The configuration that names the queue.", completion: .file(extensions: ["toml"]))
        var config = ConfigurationFile.standardPath

        @Option(help: "The queue itself, instead of the one in the configuration.", completion: .file())
        var path: String?

        func open() throws -> OutboxReader {
            let path = try path ?? ConfigurationFile.load(config).config.outbox.settings.path
            do throws(OutboxError) { return try OutboxReader(path: path) } catch { throw queueFailure(error) }
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Depth, oldest and newest of what waits.")

        @OptionGroup var options: Options

        func run() throws {
            let reader = try options.open()
            do throws(OutboxError) {
                let rows = try reader.rowCount()
                print("queue \(reader.name): \(rows == 0 ? "empty" : "\(rows) rows")")
                if let oldest = try reader.oldest(1).first, let newest = try reader.newest(1).first {
                    print("oldest  \(oldest.location.time.iso8601)  seq \(oldest.seq)")
                    print("newest  \(newest.location.time.iso8601)  seq \(newest.seq)")
                }
                for depth in try reader.depths() {
                    var line = "endpoint \(depth.endpoint): \(depth.waiting + depth.inFlight) waiting"
                    if depth.inFlight > 0 { line += ", \(depth.inFlight) of them in a formed batch" }
                    if depth.state != .active { line += ", \(depth.state.word)" }
                    if let reason = depth.state.reason, !reason.isEmpty { line += " (\(reason))" }
                    print(line)
                }
            } catch {
                throw queueFailure(error)
            }
            try finishOutput()
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List rows as JSON Lines, oldest first.")

        @OptionGroup var options: Options

        @Option(help: "How many rows at most.")
        var count = 50

        @Flag(help: "The newest rows instead of the oldest.")
        var newest = false

        func validate() throws {
            if !(1...1_000_000).contains(count) { throw ValidationError("--count takes 1…1000000.") }
        }

        func run() throws {
            let reader = try options.open()
            do throws(OutboxError) {
                let rows = newest ? try reader.newest(count) : try reader.oldest(count)
                for row in rows { print(line(row)) }
            } catch {
                throw queueFailure(error)
            }
            try finishOutput()
        }

        private func line(_ row: QueuedLocation) -> String {
            let location = row.location
            var writer = JSONWriter()
            writer.beginObject()
            writer.field("seq", row.seq)
            writer.field("time", location.time.iso8601)
            writer.field("trackable", location.trackable)
            writer.field("latitude", scaled: Int64(location.coordinate.latitudeE7), places: 7)
            writer.field("longitude", scaled: Int64(location.coordinate.longitudeE7), places: 7)
            writer.field("moving", location.moving)
            writer.field("event", location.event.rawValue)
            writer.field("reason", location.reason)
            writer.field("published", location.published)
            writer.endObject()
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }
}

private func queueFailure(_ error: OutboxError) -> ExitCode {
    switch error.cause {
    case .cannotOpen: fail(error, exitCode: 66)  // EX_NOINPUT
    case .readOnly: fail(error, exitCode: 77)  // EX_NOPERM
    case .corrupt, .newerSchema: fail(error, exitCode: 65)  // EX_DATAERR
    case .full, .io, .locked, .refused: fail(error, exitCode: 74)  // EX_IOERR
    }
}
