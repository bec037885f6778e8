import WaypostCore
import WaypostNMEA

/// Lines as gpsd 3.22 writes them.
enum GPSDLine {
    static let version = #"{"class":"VERSION","release":"3.22","rev":"3.22","proto_major":3,"proto_minor":14}"#

    /// - Parameter second: of 2026-05-04 08:00; nil = the receiver knows no time.
    static func tpv(
        _ second: Int?, mode: Int = 3, device: String? = "/dev/gps",
        at position: String = #""lat":48.117300,"lon":11.516667"#,
        _ more: String = ""
    ) -> String {
        let source = device.map { #","device":"\#($0)""# } ?? ""
        let time = second.map { #","time":"\#(Self.time($0))""# } ?? ""
        let place = mode >= 2 ? ",\(position)" : ""
        return #"{"class":"TPV"\#(source),"mode":\#(mode)\#(time)\#(place)\#(more.isEmpty ? "" : ",\(more)")}"#
    }

    static func sky(_ more: String, device: String = "/dev/gps") -> String {
        #"{"class":"SKY","device":"\#(device)",\#(more)}"#
    }

    static func time(_ second: Int) -> String {
        UTCTime(date: CivilDate(year: 2026, month: 5, day: 4)!, timeOfDay: 28_800_000 + second * 1000).iso8601
    }

    static func devices(_ devices: String...) -> String {
        #"{"class":"DEVICES","devices":[\#(devices.joined(separator: ","))]}"#
    }

    static func device(_ path: String, native: Int = 0) -> String {
        #"{"class":"DEVICE","path":"\#(path)","driver":"u-blox","activated":"2026-05-04T08:00:00.000Z","native":\#(native)}"#
    }
}

/// A connection to gpsd in a test: lines at instants in milliseconds.
struct GPSDWatch {
    var decoder: GPSDDecoder
    var epochs: [Epoch] = []
    private var now = EventTime.zero

    init(_ settings: NMEADecoder.Settings = .init(live: true), device: String? = nil) {
        decoder = GPSDDecoder(settings: settings, device: device)
    }

    /// - Parameter milliseconds: nil = at the same instant as the line before.
    @discardableResult mutating func receive(_ line: String, at milliseconds: Int? = nil) -> GPSDDecoder.Line {
        if let milliseconds { wait(until: milliseconds) }
        return decoder.decode(Array(line.utf8), at: now) { epochs.append($0) }
    }

    mutating func wait(until milliseconds: Int) {
        now = EventTime(nanoseconds: Int64(milliseconds) * 1_000_000)
        decoder.deadlineReached(at: now) { epochs.append($0) }
    }

    mutating func end() { decoder.endOfInput { epochs.append($0) } }

    /// A line a second from 0 on, and the end.
    mutating func play(_ lines: [String]) {
        for (index, line) in lines.enumerated() { receive(line, at: index * 1000) }
        end()
    }

    var fixes: [Fix] { epochs.compactMap(\.fix) }
    var voids: [VoidEpoch] { epochs.compactMap(\.void) }
    var seconds: [Int?] { fixes.map { $0.time.map { ($0.timeOfDay - 28_800_000) / 1000 } } }
}
