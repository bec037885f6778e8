@testable import Protocols
@testable import WaypostCore

/// libFuzzer entry: whatever `Retry-After` and `Date` say, the wait is none or some, is the one that is written when it is
/// written in seconds, and no date is off by more than the ten thousand years that dates can have. The first line is the
/// `Date`, each further one a `Retry-After`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzDates(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    let lines = UnsafeBufferPointer(start: data, count: size).split(
        separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    let values = lines.map { String(decoding: $0, as: UTF8.self) }
    var headers = values.first.map { [UplinkRequest.Header("date", $0)] } ?? []
    headers += values.dropFirst().map { .init("retry-after", $0) }
    let asked = RetryAfter.parse(headers)
    if let asked {
        demand(asked > .zero, "a wait of nothing")
        demand(asked <= .seconds(Int64(400_000_000_000)), "a wait of more than all years")
    }
    if values.count == 2, (1...10).contains(values[1].utf8.count),
        values[1].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    {
        let seconds = Int64(values[1]) ?? -1
        demand(asked == (seconds > 0 ? .seconds(seconds) : nil), "\(values[1]) became \(String(describing: asked))")
    }
    return 0
}
