import Positioning

/// What the sentences of one epoch have said so far.
struct EpochDraft: Sendable {
    struct Contents: OptionSet, Sendable {
        let rawValue: UInt8
        static let rmc = Contents(rawValue: 1)
        static let gga = Contents(rawValue: 2)
        static let gns = Contents(rawValue: 4)
        static let gll = Contents(rawValue: 8)
        /// Sentences that add to a fix but do not make one.
        static let accessory = Contents(rawValue: 16)
        static let makesEpoch: Contents = [.rmc, .gga, .gns, .gll]
    }

    var contents: Contents = []
    /// Milliseconds since midnight; nil until a sentence has it.
    var timeOfDay: Int?
    /// Arrival of the first byte.
    var at: EventTime = .zero

    /// The first valid one; its day is kept apart, since a later one may have it.
    private var rmc: RMC?
    private var rmcDay: Int?
    /// The first one with a solution, else the first; with the best quality of all.
    private var gga: GGA?
    /// The first one with a solution, else the first.
    private var gns: GNS?
    private var isGLLValid = false
    /// Of the first valid RMC, GNS or GLL to arrive: positions of different sentences may differ by metres and are not
    /// mixed.
    private var coordinate: Coordinate?
    private var letterQuality: FixQuality?
    private var zdaDay: Int?
    private var vtgSpeed: Double?
    private var vtgCourse: Double?
    private var gsaMode: FixMode?
    private var gsaHDOP: Double?
    /// Metres.
    private var estimates: (gst: Double?, vendor: Double?, gbs: Double?)

    var isEmpty: Bool { contents.isEmpty }
    var makesEpoch: Bool { !contents.isDisjoint(with: .makesEpoch) }

    @inline(__always)
    mutating func add(_ sentence: RMC) {
        guard sentence.isValid else { return }
        if rmc == nil {
            rmc = sentence
            letterQuality = sentence.quality ?? letterQuality
        }
        if coordinate == nil { coordinate = sentence.coordinate }
        if rmcDay == nil { rmcDay = sentence.day }
    }

    /// There may be several in one epoch, a talker for each constellation.
    @inline(__always)
    mutating func add(_ sentence: GGA) {
        guard let first = gga, first.quality != .none || sentence.quality == .none else {
            gga = sentence
            return
        }
        if sentence.quality.rawValue > first.quality.rawValue { gga?.quality = sentence.quality }
    }

    mutating func add(_ sentence: GNS) {
        if gns == nil || (gns?.quality == nil && sentence.quality != nil) { gns = sentence }
        guard let quality = sentence.quality else { return }
        if coordinate == nil { coordinate = sentence.coordinate }
        if letterQuality == nil { letterQuality = quality }
    }

    @inline(__always)
    mutating func add(_ gll: GLL) {
        guard gll.isValid else { return }
        isGLLValid = true
        if coordinate == nil { coordinate = gll.coordinate }
        if letterQuality == nil { letterQuality = gll.quality }
    }

    @inline(__always)
    mutating func add(_ vtg: VTG) {
        vtgSpeed = vtg.speed ?? vtgSpeed
        vtgCourse = vtg.course ?? vtgCourse
    }

    @inline(__always)
    mutating func add(_ gsa: GSA) {
        // One constellation may report none while another has a solution.
        if let mode = gsa.mode, mode > gsaMode ?? .none { gsaMode = mode } else if gsaMode == nil { gsaMode = gsa.mode }
        if gsaHDOP == nil { gsaHDOP = gsa.hdop }
    }

    mutating func add(_ zda: ZDA) { zdaDay = zda.day ?? zdaDay }
    mutating func add(gst: ErrorEstimate) { estimates.gst = gst.horizontal ?? estimates.gst }
    mutating func add(gbs: ErrorEstimate) { estimates.gbs = gbs.horizontal ?? estimates.gbs }
    mutating func add(vendor: ErrorEstimate) { estimates.vendor = vendor.horizontal ?? estimates.vendor }

    /// The date of the epoch in days since 1970-01-01. RMC comes first: its date is next to a status, ZDA's may be that of
    /// the receiver's own clock.
    var day: Int? { rmcDay ?? zdaDay }

    /// RMC decides alone when it is there, so that its V beats a GGA quality; then GGA, GNS, GLL.
    private var isValid: Bool {
        if let gga, gga.quality == .none { return false }
        if gsaMode == FixMode.none { return false }
        if contents.contains(.rmc) { return rmc != nil }
        if gga != nil { return true }
        if let gns { return gns.quality != nil }
        return isGLLValid
    }

    private var hdop: Double? { gga?.hdop ?? gns?.hdop ?? gsaHDOP }
    private var satellitesUsed: Int? { gga?.satellitesUsed ?? gns?.satellitesUsed }

    /// The receiver's own estimate, metres.
    var reportedAccuracy: Double? { estimates.gst ?? estimates.vendor ?? estimates.gbs }

    /// The epoch without UTC and accuracy. Without a time of day it is void, whatever its flags say.
    var solution: Epoch {
        guard isValid, let timeOfDay else { return .void(voidEpoch(.void)) }
        guard let coordinate = gga?.coordinate ?? coordinate else { return .void(voidEpoch(.noPosition)) }
        let altitude = gga?.altitude ?? gns?.altitude
        let separation = gga?.altitude == nil ? gns?.geoidSeparation : gga?.geoidSeparation
        let altitudeHAE = altitude.flatMap { altitude in separation.map { altitude + $0 } }
        let hasHeight = altitude != nil && (satellitesUsed ?? 0) >= 4
        return .fix(
            Fix(
                time: nil, timeOfDay: timeOfDay, at: at, coordinate: coordinate, altitudeMSL: altitude,
                altitudeHAE: altitudeHAE, speed: rmc?.speed ?? vtgSpeed, course: rmc?.course ?? vtgCourse, hdop: hdop,
                satellitesUsed: satellitesUsed, mode: gsaMode ?? (hasHeight ? .threeD : .twoD),
                quality: gga?.quality ?? letterQuality ?? .gps))
    }

    private func voidEpoch(_ reason: NoFixReason) -> VoidEpoch {
        VoidEpoch(
            time: nil, timeOfDay: timeOfDay, at: at, reason: reason,
            quality: gga?.quality ?? .none, satellitesUsed: satellitesUsed, hdop: hdop)
    }
}
