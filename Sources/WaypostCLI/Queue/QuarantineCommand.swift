import ArgumentParser
import Daemon
import Inspect
import WaypostControl
import WaypostCore
import WaypostHost

struct QuarantineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract: "List, resend or delete the rows that a server refused.",
        discussion: """
            A row that a server refuses is moved here with the reason, so that it does not delay others.

              waypost quarantine list                  id, endpoint, time and reason of each
              waypost quarantine retry --id 7 --id 8   send these again, after what waits
              waypost quarantine export rows.jsonl     all rows, complete, as JSON Lines
            """,
        subcommands: [List.self, Retry.self, Export.self, Drop.self], defaultSubcommand: List.self)

    /// Which rows are looked at.
    struct Source: ParsableArguments {
        @Option(help: "Only rows of this endpoint.")
        var endpoint: String?

        @OptionGroup var options: QueueCommand.Options

        func report(_ read: (QuarantineReport) throws -> Void) throws {
            try options.acting { try read(QuarantineReport(path: $0, endpoint: endpoint)) }
        }
    }

    /// Which rows an order is about.
    struct Rows: ParsableArguments {
        @Option(help: "A row, by its id in the list; may be repeated.")
        var id: [Int64] = []

        @Flag(help: "Every row, or every row of the endpoint that is named.")
        var all = false

        @Option(help: "Only rows of this endpoint.")
        var endpoint: String?

        func validate() throws {
            if id.isEmpty != all { throw ValidationError("Name rows with --id N, or all of them with --all.") }
        }

        func request(_ action: String) -> QuarantineRequest {
            QuarantineRequest(action, endpoint: endpoint, ids: id.isEmpty ? nil : id, all: all ? true : nil)
        }
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list", abstract: "List each row with its id, endpoint and reason, oldest first.",
            discussion: "Reads the queue beside a running daemon, or without one.")

        @OptionGroup var source: Source

        @Flag(help: "Print an object of JSON for each.")
        var json = false

        func run() throws {
            try source.report { try $0.list { json ? printJSON($0.json) : printLine($0.line) } }
            try finishOutput()
        }
    }

    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "retry",
            abstract: "Send rows again, after what waits, to the endpoint that refused them.")

        @OptionGroup var rows: Rows
        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            printLine("to be sent again: \(try daemon.order(rows.request("retry")).count)")
            try finishOutput()
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export", abstract: "Export complete rows as JSON Lines.",
            discussion:
                """
                The file appears whole or not at all, with mode 0600, since it contains positions. An existing file is not \
                overwritten, and neither is one that another program makes meanwhile.
                """
        )

        @Argument(help: "The file to write; the default is standard output.", completion: .file())
        var file: String?

        @Option(help: "Only this row; may be repeated.")
        var id: [Int64] = []

        @OptionGroup var source: Source

        func run() throws {
            let output = try outputFile(file, insteadOf: queueFiles(source.options.queue().path), replaces: false)
            try source.report { report in
                try report.export(only: Set(id)) { line in
                    // Words of a server may be meant for the terminal; that JSON may escape them changes nothing for programs.
                    let text = String(decoding: line, as: UTF8.self).visibleJSON
                    try OutputBuffer(descriptor: output.descriptor).write(Array(text.utf8))
                }
            }
            // Not as the owner of the queue, who may not write here.
            do throws(SystemError) { try output.commit() } catch { throw fail(error) }
        }
    }

    struct Drop: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "drop", abstract: "Delete rows for good; for root and the user of the daemon.")

        @OptionGroup var rows: Rows
        @OptionGroup var daemon: DaemonOptions

        func run() throws {
            printLine("deleted: \(try daemon.order(rows.request("drop")).count)")
            try finishOutput()
        }
    }
}
