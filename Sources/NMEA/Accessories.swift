import WaypostCore

/// What a receiver's clock shows in one sentence (ZDA).
struct ClockReading: Hashable, Sendable {
    /// Days since 1970-01-01.
    var day: Int
    /// Milliseconds since midnight; nil = the sentence has no time. Some receivers send the time of output, not of the fix.
    var timeOfDay: Int?

    private static let halfDay = 43_200_000

    /// The date of a time of day that is less than half a day away from the reading.
    func day(of other: Int) -> Int {
        guard let timeOfDay else { return day }
        let ahead = other - timeOfDay
        if ahead > Self.halfDay { return day - 1 }
        return ahead < -Self.halfDay ? day + 1 : day
    }
}

/// What the sentences that add to a fix, but do not make one, have said so far.
struct Accessories: Sendable {
    private(set) var clock: ClockReading?
    /// Metres per second.
    private(set) var speed: Double?
    private(set) var course: Double?
    /// The largest of all GSA: one constellation may report none while another has a solution.
    private(set) var mode: FixMode?
    private(set) var hdop: Double?
    private var pages: UInt8 = 0
    /// Of the first GSA, as in `SentenceAddress.talker`.
    private var pageTalker: UInt16 = 0
    /// Metres.
    private var estimates: (gst: Double?, vendor: Double?, gbs: Double?)

    private static let severalConstellations = UInt16(UInt8(ascii: "N")) << 8 | UInt16(UInt8(ascii: "G"))

    @inline(__always)
    mutating func add(_ vtg: VTG) {
        speed = vtg.speed ?? speed
        course = vtg.course ?? course
    }

    @inline(__always)
    mutating func add(_ gsa: GSA, talker: UInt16) {
        add(mode: gsa.mode, hdop: gsa.hdop)
        if pages == 0 { pageTalker = talker }
        if pages < .max { pages += 1 }
    }

    @inline(__always)
    private mutating func add(mode new: FixMode?, hdop newHDOP: Double?) {
        if let new, new > mode ?? .none { mode = new } else if mode == nil { mode = new }
        if hdop == nil { hdop = newHDOP }
    }

    mutating func add(_ zda: ZDA) {
        if let day = zda.day { clock = ClockReading(day: day, timeOfDay: zda.time) }
    }

    mutating func add(gst: ErrorEstimate) { estimates.gst = gst.horizontal ?? estimates.gst }
    mutating func add(gbs: ErrorEstimate) { estimates.gbs = gbs.horizontal ?? estimates.gbs }
    mutating func add(vendor: ErrorEstimate) { estimates.vendor = vendor.horizontal ?? estimates.vendor }

    /// Adds what came later.
    mutating func add(_ later: Accessories) {
        clock = later.clock ?? clock
        speed = later.speed ?? speed
        course = later.course ?? course
        add(mode: later.mode, hdop: later.hdop)
        if pages == 0 { pageTalker = later.pageTalker }
        pages = pages.addingReportingOverflow(later.pages).overflow ? .max : pages + later.pages
        estimates.gst = later.estimates.gst ?? estimates.gst
        estimates.gbs = later.estimates.gbs ?? estimates.gbs
        estimates.vendor = later.estimates.vendor ?? estimates.vendor
    }

    /// The receiver's own estimate, metres.
    var reportedAccuracy: Double? { estimates.gst ?? estimates.vendor ?? estimates.gbs }

    /// Every GSA says that there is no fix, for the whole receiver. A single one may be of one constellation among several,
    /// unless it has the talker of the position.
    ///
    /// - Parameter talker: of the sentence with the position.
    func denyFix(of talker: UInt16) -> Bool {
        guard mode == FixMode.none else { return false }
        return pages > 1 || pageTalker == talker && talker != Self.severalConstellations
    }
}
