import ArgumentParser
import FlyingFox
import Foundation

@main
struct Collector: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-collector",
        abstract: "Takes batches of locations on loopback and writes them as JSON Lines.",
        discussion: """
            POST to any path a batch in the native shape of waypost. A body of another shape is answered 400 with the \
            reason; a repeated Idempotency-Key is answered 200 and not stored again; a row whose (device, outbox, seq) \
            is known is counted, not stored again. GET /stats tells the counts as JSON. SIGTERM and SIGINT end it with \
            a summary.

            For tests it can misbehave: choose one of --answer, --hang, --close and --close-after-store, and narrow it \
            with --first, --for, --every, --probability, --above-bytes and --with-seq.
              waypost-collector --answer 500 --for 10s
              waypost-collector --answer 429 --retry-after 2 --every 3
              waypost-collector --answer 413 --above-bytes 2000
              waypost-collector --close-after-store --probability 0.2 --seed 7
            """)

    @Option(help: "TCP port on 127.0.0.1; 0 takes any free one.")
    var port: UInt16 = 8080

    @Option(help: ArgumentHelp("File to which each new location is appended as a line of JSON.", valueName: "file"))
    var output: String?

    @Option(help: ArgumentHelp("File into which the port is written once it is open.", valueName: "file"))
    var printPortTo: String?

    @Flag(help: "Print neither address nor counts.")
    var quiet = false

    @OptionGroup(title: "Misbehaviour")
    var faults: FaultOptions

    func validate() throws { _ = try faults.plan() }

    func run() async throws {
        let endings = endingSignals()
        let settings = Intake.Settings(faults: try faults.plan())
        let intake = Intake(settings: settings, store: LocationStore(output: try openOutput()))
        // An hour is longer than any client waits; FlyingFox would answer 500 for a handler that hangs after 15 s.
        let server = HTTPServer(
            address: try .inet(ip4: "127.0.0.1", port: port), timeout: 3600, logger: .disabled,
            handler: CollectorHandler(intake: intake, bodyLimit: settings.bodyLimit))
        let address = "127.0.0.1:\(port)"
        Task {
            do {
                try await server.run()
            } catch {
                end(
                    "cannot listen on \(address): \(error.localizedDescription); another --port may be free", status: 69
                )
            }
        }
        try await server.waitUntilListening(timeout: 60)
        guard case .ip4(_, let open) = await server.listeningAddress else { end("no port is open", status: 69) }
        if let printPortTo {
            try Data("\(open)\n".utf8).write(to: URL(fileURLWithPath: printPortTo), options: .atomic)
        }
        say("listening on http://127.0.0.1:\(open)")
        let counting = Task { await sayCounts(intake) }
        for await _ in endings { break }
        counting.cancel()
        say(await intake.summary)
        Foundation.exit(0)
    }

    private func openOutput() throws -> FileHandle? {
        guard let output else { return nil }
        let descriptor = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { end("\(output): \(String(cString: strerror(errno)))", status: 73) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// A line every five seconds in which something has changed.
    private func sayCounts(_ intake: Intake) async {
        var said = await intake.summary
        while (try? await Task.sleep(for: .seconds(5))) != nil {
            let summary = await intake.summary
            if summary != said { say(summary) }
            said = summary
        }
    }

    private func say(_ line: String) {
        if !quiet { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }
    }
}

private func end(_ message: String, status: Int32) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("waypost-collector: \(message)\n".utf8))
    Foundation.exit(status)
}

/// SIGTERM and SIGINT by a waiting thread, which works whatever signal mask the parent has handed down.
private func endingSignals() -> AsyncStream<Int32> {
    AsyncStream { continuation in
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        Thread.detachNewThread {
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, SIGTERM)
            sigaddset(&set, SIGINT)
            pthread_sigmask(SIG_BLOCK, &set, nil)
            var signal: Int32 = 0
            while sigwait(&set, &signal) != 0 {}
            continuation.yield(signal)
        }
    }
}
