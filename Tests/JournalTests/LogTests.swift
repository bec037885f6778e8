import Glibc
import Logging
import TestSupport
import Testing

@testable import Journal

@Suite struct JournalLogHandlerTests {
    private let journald: DatagramReceiver

    init() throws { journald = try DatagramReceiver() }

    private func logger(_ socket: JournalSocket) -> Logger {
        Logger(label: "waypost.test") { JournalLogHandler(label: $0, journal: socket) }
    }

    private func socket(fallback: Int32 = -1) -> JournalSocket {
        JournalSocket(path: journald.path, fallback: StderrSink(form: .prefixed, descriptor: fallback))
    }

    @Test func writesTheNativeProtocol() {
        let logger = logger(socket())
        logger.warning(
            "receiver lost",
            metadata: [
                "message_id": "0123456789abcdef0123456789abcdef", "source": "serial /dev/ttyACM0",
                "retry-in s": "10", "reason": "two\nlines",
            ], file: "Sources/Daemon/Agent.swift", line: 7)
        let expected =
            Array(
                """
                MESSAGE=receiver lost
                PRIORITY=4
                SYSLOG_IDENTIFIER=waypost
                MESSAGE_ID=0123456789abcdef0123456789abcdef
                CODE_FILE=Sources/Daemon/Agent.swift
                CODE_LINE=7
                WAYPOST_LOGGER=waypost.test
                WAYPOST_REASON

                """.utf8) + [9, 0, 0, 0, 0, 0, 0, 0]
            + Array(
                """
                two
                lines
                WAYPOST_RETRY_IN_S=10
                WAYPOST_SOURCE=serial /dev/ttyACM0

                """.utf8)
        #expect(journald.datagrams() == [expected])
    }

    static let levels: [(Logger.Level, Int)] = [
        (Logger.Level.trace, 7), (.debug, 7), (.info, 6), (.notice, 5), (.warning, 4), (.error, 3), (.critical, 2),
    ]

    @Test(arguments: levels)
    func mapsLevelsToSyslog(level: Logger.Level, priority: Int) throws {
        var logger = logger(socket())
        logger.logLevel = .trace
        logger.log(level: level, "x")
        #expect(try #require(journald.texts().first).contains("\nPRIORITY=\(priority)\n"))
    }

    static let fieldNames: [(String, String)] = [
        ("source", "WAYPOST_SOURCE"), ("_hidden", "WAYPOST__HIDDEN"), ("9", "WAYPOST_9"), ("ä=\n", "WAYPOST_____"),
        ("", "WAYPOST_"), (String(repeating: "k", count: 99), "WAYPOST_" + String(repeating: "K", count: 56)),
    ]

    @Test(arguments: fieldNames)
    func mendsFieldNames(key: String, name: String) {
        #expect(JournalRecord.fieldName(key) == name)
    }

    @Test func aMessageIDThatIsNoneIsAnOrdinaryField() throws {
        logger(socket()).info("x", metadata: ["message_id": "MESSAGE=forged"])
        #expect(try #require(journald.texts().first).hasSuffix("WAYPOST_MESSAGE_ID=MESSAGE=forged\n"))
    }

    @Test func severalValuesAreSeveralFields() throws {
        logger(socket()).info("x", metadata: ["trackable": ["order-17", "van"], "a": .array([])])
        #expect(
            try #require(journald.texts().first).hasSuffix(
                "WAYPOST_LOGGER=waypost.test\nWAYPOST_TRACKABLE=order-17\nWAYPOST_TRACKABLE=van\n"))
    }

    @Test func aLineEndInTheMessageForgesNoField() throws {
        logger(socket()).info("x\nPRIORITY=0")
        #expect(
            try #require(journald.texts().first).hasPrefix("MESSAGE\n\u{C}\0\0\0\0\0\0\0x\nPRIORITY=0\nPRIORITY=6\n"))
    }

    @Test func whatSteersATerminalIsWrittenOut() throws {
        logger(socket()).info("\u{1B}[2J\u{9B}31m", metadata: ["reason": "\u{202E}txt"])
        let text = try #require(journald.texts().first)
        #expect(text.hasPrefix("MESSAGE=\\x1b[2J\\x9b31m\n"))
        #expect(text.hasSuffix("WAYPOST_REASON=\\u{202e}txt\n"))
    }

    @Test func bigMessagesAreCutAndStillArrive() throws {
        let huge = String(repeating: "ü", count: 500_000)
        logger(socket()).info("\(huge)", metadata: ["a": "\(huge)", "b": "\(huge)"])
        let text = try #require(journald.texts().first)
        #expect(text.utf8.count < 60_000)
        #expect(text.hasPrefix("MESSAGE=üü"))
        #expect(text.contains("ü…\nPRIORITY=6"))
    }

    @Test func aFullQueueNeverBlocksAndTheDropsAreReported() throws {
        let socket = socket()
        let logger = logger(socket)
        for number in 0..<5000 { logger.info("line \(number)") }
        let stored = journald.datagrams().count
        #expect((1..<5000).contains(stored))
        #expect(socket.dropped == 5000 - stored)
        logger.info("again")
        let texts = journald.texts()
        try #require(texts.count == 2)
        #expect(texts[0].contains("WAYPOST_DROPPED=\(5000 - stored)\n"))
        #expect(texts[1].hasPrefix("MESSAGE=again\n"))
        logger.info("and again")
        #expect(journald.texts().count == 1)
    }

    @Test func aRestartedJournalIsFoundAgain() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let socket = socket(fallback: ends[1])
        let logger = logger(socket)
        logger.info("before")
        #expect(journald.texts().count == 1)
        journald.stop()
        logger.error("meanwhile", metadata: ["k": "v"])
        try journald.startAgain()
        logger.info("after")
        #expect(journald.texts().count == 1)
        close(ends[1])
        let written = try readAll(ends[0])
        #expect(written == "<3>meanwhile k=v\n")
        #expect(socket.dropped == 0)
    }
}

@Suite struct StderrLogHandlerTests {
    @Test func prefixesLinesForASupervisor() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        var logger = Logger(label: "x") { [fd = ends[1]] _ in
            StderrLogHandler(sink: StderrSink(form: .prefixed, descriptor: fd))
        }
        logger[metadataKey: "source"] = "udp"
        logger.info("fix\n<0>forged", metadata: ["b": "2", "a": "1"])
        logger.critical("\u{1B}[2Jgone")
        close(ends[1])
        let written = try readAll(ends[0])
        #expect(written == "<6>fix\\x0a<0>forged a=1 b=2 source=udp\n<2>\\x1b[2Jgone source=udp\n")
    }

    @Test func aReaderThatDoesNotReadHoldsNothingUp() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let sink = StderrSink(form: .prefixed, descriptor: ends[1])
        let logger = Logger(label: "x") { _ in StderrLogHandler(sink: sink) }
        for _ in 0..<100 { logger.info("\(String(repeating: "x", count: 9000))") }
        #expect((50..<100).contains(sink.dropped))
        _ = try readSome(ends[0])
        let dropped = sink.dropped
        logger.info("again")
        close(ends[1])
        let text = try readAll(ends[0])
        #expect(text == "<4>\(dropped) log lines were dropped because they were not read\n<6>again\n")
    }

    @Test func aReaderThatIsGoneDoesNoHarm() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        close(ends[0])
        let sink = StderrSink(form: .prefixed, descriptor: ends[1])
        Logger(label: "x") { _ in StderrLogHandler(sink: sink) }.info("x")
        #expect(sink.dropped == 1)
        close(ends[1])
    }

    @Test func aTerminalGetsTheTimeAndTheLevelInWords() throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let sink = StderrSink(form: .terminal, descriptor: ends[1], timeOfDay: { "12:34:56" })
        Logger(label: "x") { _ in StderrLogHandler(sink: sink) }.warning("no fix", metadata: ["since": "60 s"])
        close(ends[1])
        let written = try readAll(ends[0])
        #expect(written == "12:34:56 warning: no fix since=60 s\n")
    }
}

@Suite struct LogDestinationTests {
    @Test func theJournalOnlyIfStandardErrorIsItsStream() throws {
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { ends.forEach { close($0) } }
        var status = stat()
        #expect(fstat(ends[0], &status) == 0)
        let stream = "\(status.st_dev):\(status.st_ino)"
        let names = [[:], ["JOURNAL_STREAM": stream], ["JOURNAL_STREAM": "\(stream)1"], ["JOURNAL_STREAM": ""]].map {
            LogDestination.detect(environment: $0, descriptor: ends[0]).name
        }
        #expect(names == ["stderr", "journal", "stderr", "stderr"])
    }

    @Test func aTerminalIsForPeople() throws {
        var master: Int32 = -1
        var slave: Int32 = -1
        #expect(openpty(&master, &slave, nil, nil, nil) == 0)
        defer { [master, slave].forEach { close($0) } }
        #expect(LogDestination.detect(environment: [:], descriptor: slave).name == "terminal")
    }

    @Test func theHandlerFitsTheDestination() throws {
        let journald = try DatagramReceiver()
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { ends.forEach { close($0) } }
        var status = stat()
        #expect(fstat(ends[0], &status) == 0)
        let destination = LogDestination.detect(
            environment: ["JOURNAL_STREAM": "\(status.st_dev):\(status.st_ino)"], descriptor: ends[0],
            journalPath: journald.path)
        Logger(label: "waypost") { destination.makeHandler(label: $0) }.info("hello")
        #expect(journald.texts().first?.hasPrefix("MESSAGE=hello\n") == true)
    }
}

private func readSome(_ fd: Int32) throws -> String {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var ready = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, 0) == 1 {
        let count = read(fd, &buffer, buffer.count)
        guard count > 0 else { break }
        all += buffer[..<count]
    }
    return String(decoding: all, as: UTF8.self)
}

/// What was written until the other end was closed; closes this one.
private func readAll(_ fd: Int32) throws -> String {
    defer { close(fd) }
    return try readSome(fd)
}
