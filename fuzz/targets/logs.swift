@testable import Inspect
@testable import WaypostCore
@testable import WaypostNMEA

/// libFuzzer entry: whatever a log is, by its content NMEA, gpsd's JSON or GPX, it is read or refused, the same in pieces of
/// any length, and its epochs are counted and have values that a receiver can have.
///
/// The last two bytes are the seed of the pieces, so that a log is an input as it stands.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLogs(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 2 else { return 0 }
    let log = Array(UnsafeBufferPointer(start: data, count: size - 2))
    let whole = Outcome(of: [log[...]])
    let pieces = Outcome(of: cut(log, seed: UInt64(data[size - 2]) << 8 | UInt64(data[size - 1])))
    demand(whole == pieces, "the pieces matter: \(whole) and \(pieces)")
    return 0
}

private func cut(_ log: [UInt8], seed: UInt64) -> [ArraySlice<UInt8>] {
    var (state, rest, pieces) = (seed, log[...], [ArraySlice<UInt8>]())
    while !rest.isEmpty {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let size = state >> 60 == 0 ? 1 + state >> 33 % 2000 : 1 + state >> 33 % 9
        pieces.append(rest.prefix(Int(size)))
        rest = rest.dropFirst(Int(size))
    }
    return pieces
}

/// What becomes of a log.
private struct Outcome: Equatable {
    private var epochs: [Epoch] = []
    private var counters = NMEACounters()
    private var isNMEA = true
    private var notices: [LogProblem] = []
    private var problem: LogProblem?

    init(of pieces: [ArraySlice<UInt8>]) {
        var decoder = LogDecoder(settings: .init())
        var epochs: [Epoch] = []
        func take(_ epoch: Epoch) {
            if case .fix(let fix) = epoch { demandPossible(fix) }
            epochs.append(epoch)
        }
        decoder.begin("log")
        do throws(LogProblem) {
            for piece in pieces { try decoder.read(Array(piece).span, take) }
            try decoder.finish(take)
        } catch { problem = error }
        decoder.end(take)
        let decoded = decoder.counters
        demand(decoded.fixes + decoded.voidEpochs == epochs.count, "\(epochs.count) epochs, counted \(decoded)")
        self.epochs = epochs
        // Nobody reads the bytes of a log that is refused.
        if problem == nil { counters = decoded }
        (isNMEA, notices) = (decoder.isNMEA, decoder.notices)
        for notice in notices + (problem.map { [$0] } ?? []) {
            demand(notice.line > 0 && notice.words.utf8.count < 400, "no notice for people: \(notice)")
        }
    }
}
