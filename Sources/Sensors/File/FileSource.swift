import Glibc
import WaypostCore
import WaypostNMEA

/// A log as a source of epochs: a plain file, a FIFO or standard input.
///
/// Up to its end a log runs on its own clock. A followed one then delivers `caughtUp`, and what is appended later arrives on
/// the boot clock. Reading is cut into chunks, each handed over before the next is read, so that the loop is never
/// blocked for long and nothing is read while the source is paused.
package final class FileSource: FixSource {
    package let name: String
    /// Where reading began; nil before the file was opened.
    package private(set) var startedAt: FileStart?

    private static let chunkBytes = 32_768
    /// At the recorded pace little is read ahead: it has to be kept until it is due.
    private static let recordedChunkBytes = 4096
    private static let chunksPerTurn = 4
    private static let pollInterval = Duration.seconds(1)

    /// As if the kernel could not watch the file.
    var pollsOnly = false

    private let settings: FileSettings
    private let standardInput: Int32
    private var startAt: FilePosition?
    private var isPaused = false
    private var isEnded = false
    private var retry = RetryDelay(from: .seconds(1), to: .seconds(10))
    /// When to continue reading, or to open; nil = when there is input.
    private var readAt: EventTime?

    private var file: InputFile?
    private var watch: FileWatch?
    /// Bytes of the file before the next chunk.
    private var offset: Int64 = 0

    /// The log on its own clock.
    private var decoder: NMEADecoder
    /// Offset at which decoding of the first file began.
    private var decodedFrom: Int64 = 0
    private var stream: FileStream?
    private var clock = LogClock()
    private var state = SourceState.opening
    private var pace: PlaybackPace?
    /// At the recorded pace: what was read and is not due yet.
    private var scheduled: [(due: EventTime, event: SourceEvent)] = []
    private var pausedSince: EventTime?
    /// Memory for the next chunk and what it gives, kept from one to the next.
    private let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: chunkBytes)
    private var spare: [SourceEvent] = []

    /// What comes after the end of a followed log; nil until then.
    private var live: LiveStream?
    /// There is one. Each fix asks for that, and to find `live` nil copies a whole stream.
    private var isFollowing = false

    /// - Parameters:
    ///   - startAt: where an earlier run ended; nil = from the beginning.
    ///   - standardInput: the descriptor behind `-`.
    package init(settings: FileSettings, startAt: FilePosition? = nil, standardInput: Int32 = STDIN_FILENO) {
        self.settings = settings
        self.startAt = startAt
        self.standardInput = standardInput
        name = settings.path == "-" ? "standard input" : "file \(settings.path)"
        decoder = NMEADecoder(settings: settings.decoder)
        if case .recorded(let factor) = settings.playback { pace = PlaybackPace(factor: factor) }
    }

    deinit { buffer.deallocate() }

    package var stray: String? { live?.strayWords }
    package var strayCause: String { StrayCause.file }

    package var descriptor: Int32? {
        guard !isPaused, let file, scheduled.isEmpty, live?.isResting != true else { return nil }
        switch file.kind {
        case .stream: return file.fd
        case .plain: return live == nil ? nil : watch?.fd
        }
    }

    package var nextDeadline: EventTime? {
        if isPaused { return nil }
        if let due = scheduled.first?.due { return due }
        return [readAt, live?.nextDeadline].compactMap { $0 }.min()
    }

    package var counters: NMEACounters { live?.counters ?? decoder.counters }
    package var satellites: SatelliteView? { live.map(\.satellites) ?? decoder.satellites }
    package var antenna: AntennaState? { live.map(\.antenna) ?? decoder.antenna }
    package var dates: ReceiverDates {
        isFollowing ? live?.dates ?? ReceiverDates() : decoder.receiverDates
    }

    package func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            events.append(.stateChanged(.opening))
            open(at: now, &events)
        }
    }

    package func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            watch?.drain()
            readOn(at: now, &events)
        }
    }

    package func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        guard !isPaused else { return }
        act(deliver) { events in
            if !scheduled.isEmpty { release(at: now, &events) }
            guard scheduled.isEmpty else { return }
            live?.restEnded(at: now)
            watch?.drain()
            if let readAt, now >= readAt {
                self.readAt = nil
                if file == nil { open(at: now, &events) } else { readOn(at: now, &events) }
            } else if live != nil {
                readOn(at: now, &events)
            }
            live?.deadlineReached(at: now, &events)
        }
    }

    package func setPaused(_ paused: Bool, at now: EventTime) {
        guard paused != isPaused else { return }
        isPaused = paused
        if paused {
            pausedSince = now
        } else if let since = pausedSince {
            let pause = now.duration(since: since)
            pace?.paused(for: pause)
            for index in scheduled.indices { scheduled[index].due = scheduled[index].due + pause }
            pausedSince = nil
        }
    }

    package func setAsleep(
        _ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void
    ) -> Bool { false }

    package func close() {
        file = nil
        watch = nil
        readAt = nil
        scheduled = []
        isEnded = true
    }

    private func act(_ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void) {
        var events = spare
        spare = []
        body(&events)
        for event in events { deliver(event) }
        events.removeAll(keepingCapacity: true)
        spare = events
    }

    private func open(at now: EventTime, _ events: inout [SourceEvent]) {
        guard !isEnded else { return }
        do throws(SourceProblem) {
            let file = try InputFile(path: settings.path, standardInput: standardInput)
            let resume = place(in: file)
            self.file = file
            retry.reset()
            offset = resume.offset
            decodedFrom = resume.offset
            (live, isFollowing) = (nil, false)
            decoder = NMEADecoder(settings: settings.decoder, resume: resume)
            clock = LogClock(resume: resume)
            stream = file.hasPlace ? FileStream(identity: file.identity, base: 0) : nil
            if settings.follow, file.hasPlace, !pollsOnly { watch = FileWatch(path: settings.path, of: file) }
            switch file.kind {
            case .plain: readAt = now
            case .stream: if settings.follow { goLive(at: now, &events) }
            }
        } catch {
            failed(error, at: now, &events)
        }
    }

    private func failed(_ problem: SourceProblem, at now: EventTime, _ events: inout [SourceEvent]) {
        readAt = now + retry.next()
        announce(.lost(reason: problem.description), &events)
    }

    private func place(in file: InputFile) -> ResumePoint {
        var resume = ResumePoint.start
        startedAt = .fromBeginning
        if let wanted = startAt {
            if let reason = file.rejects(wanted) {
                startedAt = .positionRejected(reason: reason)
            } else {
                resume = wanted.resume
                startedAt = .resumed(offset: resume.offset)
            }
        }
        return resume
    }

    /// Reads up to a few chunks: one that gives epochs ends the turn, so that the loop can pause the source.
    private func readOn(at now: EventTime, _ events: inout [SourceEvent]) {
        guard let file, !isEnded else { return }
        let size = pace == nil || live != nil ? Self.chunkBytes : Self.recordedChunkBytes
        do throws(SourceProblem) {
            for _ in 0..<Self.chunksPerTurn {
                let eventsBefore = events.count + scheduled.count
                let count = try readChunk(of: file, bytes: size, at: now, &events)
                guard let count else { return }
                if count == 0 {
                    guard endReached(of: file, at: now, &events) else { return }
                    break
                }
                if live == nil, events.count + scheduled.count > eventsBefore { break }
            }
            // There may be more; the descriptor of a stream shows that by itself.
            if self.file?.kind == .plain { readAt = now }
        } catch {
            failed(error, at: now, &events)
        }
    }

    private func readChunk(
        of file: InputFile, bytes size: Int, at now: EventTime, _ events: inout [SourceEvent]
    ) throws(SourceProblem) -> Int? {
        let room = UnsafeMutableBufferPointer(rebasing: buffer[..<size])
        guard let count = try file.read(into: room, from: offset) else { return nil }
        guard count > 0 else { return 0 }
        retry.reset()
        offset += Int64(count)
        received(Span(_unsafeElements: UnsafeBufferPointer(rebasing: buffer[..<count])), at: now, &events)
        return count
    }

    private func announce(_ new: SourceState, _ events: inout [SourceEvent]) {
        if live != nil {
            live?.announce(new, &events)
        } else if new != state {
            state = new
            events.append(.stateChanged(new))
        }
    }

    private func received(_ bytes: Span<UInt8>, at now: EventTime, _ events: inout [SourceEvent]) {
        if live != nil {
            live?.received(bytes, at: now, bufferTime: nil, &events)
            return
        }
        let sentencesBefore = decoder.counters.sentences
        decoder.decode(bytes, at: now) { epoch, resume in
            announce(.receiving, &events)
            play(epoch, resume, at: now, &events)
        }
        if decoder.counters.sentences > sentencesBefore { announce(.receiving, &events) }
        release(at: now, &events)
    }

    private func play(_ epoch: Epoch, _ resume: ResumePoint, at now: EventTime, _ events: inout [SourceEvent]) {
        let time = clock.time(of: epoch)
        var epoch = epoch
        epoch.at = time
        let event = SourceEvent.epoch(epoch, clock: .log(time), position: stream?.position(resume))
        if let due = pace?.due(time, at: now) {
            scheduled.append((due, event))
        } else {
            events.append(event)
        }
    }

    private func release(at now: EventTime, _ events: inout [SourceEvent]) {
        guard !scheduled.isEmpty else { return }
        let due = scheduled.prefix { $0.due <= now }
        events += due.map(\.event)
        scheduled.removeFirst(due.count)
    }
}

// What happens at the end of the input.
extension FileSource {
    /// - Returns: true when there is something to read again.
    private func endReached(of file: InputFile, at now: EventTime, _ events: inout [SourceEvent]) -> Bool {
        if file.isFIFO, file.isNamed {
            nextWriter(at: now, &events)
            return false
        }
        guard settings.follow, file.hasPlace else {
            end(at: now, &events)
            return false
        }
        if live == nil { goLive(at: now, &events) }
        if watch == nil { readAt = now + Self.pollInterval }
        return continuesElsewhere(file, at: now, &events)
    }

    private func goLive(at now: EventTime, _ events: inout [SourceEvent]) {
        decoder.logEnded { play($0, $1, at: now, &events) }
        live = LiveStream(
            continuing: decoder, file: stream, state: state, staleness: settings.staleness, at: now)
        isFollowing = true
        events.append(.caughtUp)
    }

    private func end(at now: EventTime, _ events: inout [SourceEvent]) {
        isEnded = true
        file = nil
        watch = nil
        readAt = nil
        if live != nil {
            live?.ended(at: now, &events)
            return
        }
        endStretch(at: now, &events)
        state = .ended
        if let last = scheduled.last {
            scheduled.append((last.due, .stateChanged(.ended)))
        } else {
            events.append(.stateChanged(.ended))
        }
    }

    /// The end of a FIFO is that of one writer. The new end of ours is opened before the old one is closed, so that a
    /// writer that has come in between does not find the pipe without a reader.
    private func nextWriter(at now: EventTime, _ events: inout [SourceEvent]) {
        endStretch(at: now, &events)
        announce(.lost(reason: "the writer closed \(settings.path); waiting for another"), &events)
        do throws(SourceProblem) {
            file = try InputFile(path: settings.path, standardInput: standardInput)
        } catch {
            file = nil
            failed(error, at: now, &events)
        }
    }

    /// Truncated, or another file has its name (log rotation).
    private func continuesElsewhere(_ file: InputFile, at now: EventTime, _ events: inout [SourceEvent]) -> Bool {
        guard let size = file.size else { return false }
        if size < offset {
            continueReading(with: file, at: now, &events)
            return true
        }
        guard let named = InputFile.at(settings.path), named.identity != file.identity else { return false }
        guard named.size > 0 else {
            // The writer may not know yet that the log was rotated.
            watch?.watchFile()
            return false
        }
        if let size = file.size, size > offset { return true }
        guard let next = try? InputFile(path: settings.path, standardInput: standardInput), next.hasPlace else {
            return false
        }
        continueReading(with: next, at: now, &events)
        watch = pollsOnly ? nil : FileWatch(path: settings.path, of: next)
        return true
    }

    private func continueReading(with next: InputFile, at now: EventTime, _ events: inout [SourceEvent]) {
        stream = FileStream(identity: next.identity, base: decodedFrom + Int64(counters.bytes))
        live?.streamBroken(continuesAs: stream, at: now, &events)
        file = next
        offset = 0
    }

    /// The epoch that is open will get no more sentences.
    private func endStretch(at now: EventTime, _ events: inout [SourceEvent]) {
        if live != nil {
            live?.streamBroken(continuesAs: stream, at: now, &events)
            return
        }
        decoder.endOfInput { play($0, $1, at: now, &events) }
        release(at: now, &events)
        decoder.reset(at: now)
    }
}
