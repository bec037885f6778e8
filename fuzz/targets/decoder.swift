@testable import WaypostCore
@testable import WaypostNMEA

/// libFuzzer entry: any bytes, cut in any way, give the same epochs as in one piece, whatever the settings; and going on
/// behind any epoch gives the rest. The last byte chooses settings, the two before it the seed of the cuts, so that a log
/// is an input as it stands.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDecoder(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 3 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data, count: size - 3))
    let settings = settings(from: data[size - 1])
    let seed = UInt64(data[size - 3]) << 8 | UInt64(data[size - 2])

    let whole = decode(bytes, settings, seed: nil)
    let cut = decode(bytes, settings, seed: seed)
    demand(cut.epochs == whole.epochs, "epochs depend on the chunks")
    demand(cut.resumes == whole.resumes, "places to go on from depend on the chunks")
    demand(cut.counters == whole.counters, "counters depend on the chunks")
    demand(whole.counters.bytes == bytes.count, "bytes are not counted")
    demand(whole.counters.fixes + whole.counters.voidEpochs == whole.epochs.count, "epochs are not counted")
    for case .fix(let fix) in whole.epochs { demandPossible(fix) }

    if let place = whole.epochs.indices.randomElement(seed: seed) {
        let rest = decode(bytes, settings, seed: nil, resume: whole.resumes[place])
        demand(rest.resumes == Array(whole.resumes[(place + 1)...]), "the rest differs behind epoch \(place)")
    }
    runLive(bytes, settings, seed: seed)
    return 0
}

private func settings(from byte: UInt8) -> NMEADecoder.Settings {
    NMEADecoder.Settings(
        talker: byte & 1 == 0 ? nil : "GP", maximumLength: byte & 2 == 0 ? 128 : 256,
        allowMissingChecksum: byte & 4 != 0,
        rollover: byte & 8 == 0 ? .off : .repair(buildDate: CivilDate(year: 2026, month: 1, day: 1)!))
}

private struct Decoded {
    var epochs: [Epoch] = []
    var resumes: [ResumePoint] = []
    var counters = NMEACounters()
}

private func decode(
    _ bytes: [UInt8], _ settings: NMEADecoder.Settings, seed: UInt64?, resume: ResumePoint = .start
) -> Decoded {
    var decoder = NMEADecoder(settings: settings, resume: resume)
    var cuts = Cuts(seed: seed)
    var result = Decoded()
    let span = bytes.span
    var position = Int(resume.offset)
    while position < span.count {
        let end = cuts.end(from: position, count: span.count)
        decoder.decode(span.extracting(position..<end), at: .zero) { epoch, place in
            result.epochs.append(epoch)
            result.resumes.append(place)
        }
        position = end
    }
    decoder.endOfInput { epoch, place in
        result.epochs.append(epoch)
        result.resumes.append(place)
    }
    result.counters = decoder.counters
    return result
}

/// A live line with pauses at the cuts: nothing traps, and the log clock never goes back.
private func runLive(_ bytes: [UInt8], _ settings: NMEADecoder.Settings, seed: UInt64) {
    var settings = settings
    settings.live = true
    var decoder = NMEADecoder(settings: settings)
    var cuts = Cuts(seed: seed)
    var clock = LogClock()
    var logTime = EventTime.zero
    var now = EventTime.zero
    var position = 0
    let emit: (Epoch, ResumePoint) -> Void = { epoch, _ in
        let time = clock.time(of: epoch)
        demand(time >= logTime || logTime == .zero, "the log clock went back")
        logTime = time
    }
    let span = bytes.span
    while position < span.count {
        let end = cuts.end(from: position, count: span.count)
        decoder.decode(span.extracting(position..<end), at: now, emit)
        position = end
        now = now + .milliseconds(Int64(cuts.next() % 500))
        decoder.deadlineReached(at: now, emit)
        switch cuts.next() % 32 {
        case 0: decoder.datagramEnded()
        case 1: decoder.reset(at: now)
        default: break
        }
    }
    decoder.endOfInput(emit)
}

/// Chunk lengths from a seed: mostly short ones. Without a seed there is one chunk.
private struct Cuts {
    private var state: UInt64?

    init(seed: UInt64?) { state = seed }

    mutating func next() -> UInt64 {
        guard let before = state else { return 0 }
        let now = before &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        state = now
        return now >> 33
    }

    mutating func end(from position: Int, count: Int) -> Int {
        guard state != nil else { return count }
        let length = next() % 8 == 0 ? next() % 300 : next() % 12
        return min(count, position + 1 + Int(length))
    }
}

extension Range<Int> {
    fileprivate func randomElement(seed: UInt64) -> Int? {
        isEmpty ? nil : lowerBound + Int(seed % UInt64(count))
    }
}
