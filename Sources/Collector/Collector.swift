import ArgumentParser
import FlyingFox
import Foundation

@main
struct Collector: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "waypost-collector",
        abstract: "Takes batches of locations on loopback and writes them as JSON Lines.",
        discussion: """
            POST to any path a batch in the native shape of waypost, or in its columns (Content-Type \
            application/vnd.waypost.compact+json). A body of another shape is answered 400 with the reason; a repeated \
            Idempotency-Key is answered 200 and not stored again; a row whose (device, outbox, seq) is known is \
            counted, not stored again. GET / is a page for a browser that shows what arrives while it arrives. GET /stats \
            returns the counts as JSON. PUT /settings/DEVICE offers settings to a device, whose report is at \
            /reported/DEVICE; POST /commands/DEVICE sends it a command, and GET has the answers (docs/remote.md). SIGTERM \
            and SIGINT end it with a summary.

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

    /// The main thread waits for signals, so that they are blocked in every thread that comes after.
    func run() throws {
        var endings = sigset_t()
        sigemptyset(&endings)
        sigaddset(&endings, SIGTERM)
        sigaddset(&endings, SIGINT)
        pthread_sigmask(SIG_BLOCK, &endings, nil)

        let plan = try faults.plan()
        let now: @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) }
        let feed = LiveFeed(
            run: String(UInt64.random(in: 1...UInt64.max), radix: 36), counters: Intake.noStatistics, now: now)
        let intake = Intake(faults: plan, store: LocationStore(output: try openOutput()), feed: feed, now: now)
        let (port, portFile, isQuiet) = (port, printPortTo, quiet)
        let say: @Sendable (String) -> Void = { line in
            if !isQuiet { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }
        }
        Task {
            await serve(CollectorHandler(intake: intake, page: LivePage(feed: feed)), port) { open in
                do {
                    let line = Data("\(open)\n".utf8)
                    if let portFile { try line.write(to: URL(fileURLWithPath: portFile), options: .atomic) }
                } catch {
                    end("--print-port-to: \(error.localizedDescription)", status: 73)
                }
                say("listening on http://127.0.0.1:\(open)")
            }
        }
        Task { await sayCounts(intake, say) }
        Task { while (try? await Task.sleep(for: .seconds(2))) != nil { feed.beat() } }
        var signal: Int32 = 0
        while sigwait(&endings, &signal) != 0 {}
        Task {
            say(await intake.summary)
            Foundation.exit(0)
        }
        dispatchMain()
    }

    private func openOutput() throws -> FileHandle? {
        guard let output else { return nil }
        let descriptor = open(output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { end("\(output): \(String(cString: strerror(errno)))", status: 73) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}

/// Serves until the process ends.
private func serve(
    _ handler: CollectorHandler, _ port: UInt16, _ opened: @escaping @Sendable (UInt16) -> Void
) async {
    do {
        // An hour is longer than any client waits; FlyingFox answers 500 for a handler that takes longer.
        let server = HTTPServer(
            address: try .inet(ip4: "127.0.0.1", port: port), timeout: 3600, logger: .disabled, handler: handler)
        Task {
            try await server.waitUntilListening(timeout: 60)
            if case .ip4(_, let port) = await server.listeningAddress { opened(port) }
        }
        try await server.run()
    } catch {
        let cause = error.localizedDescription
        end("cannot listen on 127.0.0.1:\(port): \(cause); another --port may be free", status: 69)
    }
}

/// A line every five seconds in which something has changed.
private func sayCounts(_ intake: Intake, _ say: @Sendable (String) -> Void) async {
    var said = await intake.summary
    while (try? await Task.sleep(for: .seconds(5))) != nil {
        let summary = await intake.summary
        if summary != said { say(summary) }
        said = summary
    }
}

private func end(_ message: String, status: Int32) -> Never {
    try? FileHandle.standardError.write(contentsOf: Data("waypost-collector: \(message)\n".utf8))
    Foundation.exit(status)
}
