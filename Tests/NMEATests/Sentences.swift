import WaypostCore
import WaypostNMEA

/// `$body*hh` and a line end.
func sentence(_ body: String, start: String = "$") -> String {
    let checksum = body.utf8.reduce(0, ^)
    let digits = String(checksum, radix: 16, uppercase: true)
    return "\(start)\(body)*\(digits.utf8.count < 2 ? "0" : "")\(digits)\r\n"
}

func rmc(
    _ time: String, _ status: String = "A", _ position: String = "4807.0380,N,01131.0000,E", speed: String = "",
    course: String = "", date: String = "230394", mode: String = "A"
) -> String {
    sentence("GPRMC,\(time),\(status),\(position),\(speed),\(course),\(date),,,\(mode)")
}

func gga(
    _ time: String, quality: String = "1", _ position: String = "4807.0380,N,01131.0000,E", satellites: String = "08",
    hdop: String = "0.9", altitude: String = "545.4", separation: String = "46.9"
) -> String {
    sentence("GPGGA,\(time),\(position),\(quality),\(satellites),\(hdop),\(altitude),M,\(separation),M,,")
}

func gll(_ time: String, _ status: String = "A", _ position: String = "4807.0390,N,01131.0000,E") -> String {
    sentence("GPGLL,\(position),\(time),\(status),A")
}

func gsa(mode: String, hdop: String = "1.1", talker: String = "GP") -> String {
    sentence("\(talker)GSA,A,\(mode),04,05,,,,,,,,,,,2.0,\(hdop),1.7")
}

struct Decoded: Equatable {
    var epochs: [Epoch]
    var resumes: [ResumePoint]
    var counters: NMEACounters
    var satellites: SatelliteView?
    var antenna: AntennaState?

    var fixes: [Fix] { epochs.compactMap(\.fix) }
    var voids: [VoidEpoch] { epochs.compactMap(\.void) }
    var times: [String] { fixes.map { $0.time?.iso8601 ?? "dateless" } }
}

extension Epoch {
    var fix: Fix? { if case .fix(let fix) = self { fix } else { nil } }
    var void: VoidEpoch? { if case .void(let void) = self { void } else { nil } }
}

func decode(_ text: String, settings: NMEADecoder.Settings = .init(), resume: ResumePoint = .start) -> Decoded {
    decode(Array(text.utf8), settings: settings, resume: resume)
}

/// Decodes chunks that end at the given places.
func decode(
    _ bytes: [UInt8], cuts: [Int] = [], settings: NMEADecoder.Settings = .init(), resume: ResumePoint = .start
) -> Decoded {
    var decoder = NMEADecoder(settings: settings, resume: resume)
    var epochs: [Epoch] = []
    var resumes: [ResumePoint] = []
    let emit: (Epoch, ResumePoint) -> Void = {
        epochs.append($0)
        resumes.append($1)
    }
    let span = bytes.span
    var position = Int(resume.offset)
    for cut in cuts + [span.count] {
        decoder.decode(span.extracting(position..<cut), at: .zero, emit)
        position = cut
    }
    decoder.endOfInput(emit)
    return Decoded(
        epochs: epochs, resumes: resumes, counters: decoder.counters, satellites: decoder.satellites,
        antenna: decoder.antenna)
}

/// A live decoder on a clock of milliseconds that fires its deadline as an event loop would.
struct Line {
    var decoder: NMEADecoder
    /// Every epoch with the millisecond at which it came out.
    var emitted: [(at: Int, epoch: Epoch)] = []

    init(_ settings: NMEADecoder.Settings = .init(live: true)) { decoder = NMEADecoder(settings: settings) }

    static func instant(_ milliseconds: Int) -> EventTime {
        EventTime(nanoseconds: Int64(milliseconds) * 1_000_000)
    }

    mutating func wait(until milliseconds: Int) {
        while let deadline = decoder.nextDeadline, deadline <= Self.instant(milliseconds) {
            let at = Int(deadline.nanoseconds / 1_000_000)
            var came: [Epoch] = []
            decoder.deadlineReached(at: deadline) { epoch, _ in came.append(epoch) }
            emitted += came.map { (at, $0) }
        }
    }

    mutating func receive(_ text: String, at milliseconds: Int) {
        wait(until: milliseconds)
        var came: [Epoch] = []
        let bytes = Array(text.utf8)
        decoder.decode(bytes.span, at: Self.instant(milliseconds)) { epoch, _ in came.append(epoch) }
        emitted += came.map { (milliseconds, $0) }
    }

    var instants: [Int] { emitted.map(\.at) }
    var fixes: [Fix] { emitted.compactMap(\.epoch.fix) }
}
