import WaypostCore

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
    /// Stream offset of the first sentence.
    var start: Int64 = 0
    /// Read before the epoch began, without a position of its own time.
    var clockAhead: ClockReading?
    /// An RMC without a time came: what follows without a time may be of another source.
    var isOver = false
    var accessories = Accessories()

    /// Of each kind of position, how many came from the talker of the first one (upper half), and that talker.
    private var seen = SIMD4<UInt32>()
    /// Kinds of which a sentence said something else than 0°/0°, valid or not.
    private var meant: Contents = []
    private var hasNull = false
    /// Of the first position, as in `SentenceAddress.talker`.
    private var talker: UInt16 = 0
    /// The first valid one; its day is kept apart, since a later one may have it.
    private var rmc: RMC?
    private var rmcDay: Int?
    /// The first of those that say most; with the best quality of all.
    private var gga: GGA?
    /// The first one with a solution, else the first.
    private var gns: GNS?
    private var isGLLValid = false
    /// Of the first valid RMC, GNS or GLL to arrive: positions of different sentences may differ by metres and are not
    /// mixed.
    private var coordinate: Coordinate?
    private var letterQuality: FixQuality?

    var isEmpty: Bool { contents.isEmpty }
    var makesEpoch: Bool { !contents.isDisjoint(with: .makesEpoch) }

    /// Counts a sentence with a position. One may come twice in an epoch, from two lines or corrected; more is a clock that
    /// stands.
    ///
    /// - Returns: false when two of its kind came from its talker, so that it is of another epoch.
    @inline(__always)
    mutating func count(_ kind: Contents, talker: UInt16) -> Bool {
        let index = kind.rawValue.trailingZeroBitCount
        let known = seen[index]
        guard known != 0 else {
            if !makesEpoch { self.talker = talker }
            seen[index] = 1 << 16 | UInt32(talker)
            return true
        }
        guard UInt16(truncatingIfNeeded: known) == talker else { return true }
        guard known >> 16 < 2 else { return false }
        seen[index] = 2 << 16 | UInt32(talker)
        return true
    }

    /// How many more times than once the receiver sent the epoch.
    var repeats: Int { Int(seen.max() >> 16) - 1 }

    var positions: Int { (contents.rawValue & Contents.makesEpoch.rawValue).nonzeroBitCount }

    /// Some sentence has a valid position.
    var claimsFix: Bool {
        if let coordinate, !coordinate.isNull { return true }
        return gga.map { $0.worth > 1 && $0.coordinate != nil } ?? false
    }

    @inline(__always)
    mutating func add(_ sentence: RMC) {
        note(sentence.coordinate, .rmc)
        guard sentence.isValid else { return }
        if rmc == nil || rmc?.isNull == true && !sentence.isNull {
            if rmc != nil { rmcDay = nil }
            rmc = sentence
            letterQuality = sentence.quality ?? letterQuality
        }
        take(sentence.coordinate)
        if rmcDay == nil, rmc?.isNull == sentence.isNull { rmcDay = sentence.day }
    }

    /// There may be several in one epoch, a talker for each constellation.
    @inline(__always)
    mutating func add(_ sentence: GGA) {
        note(sentence.coordinate, .gga)
        guard let first = gga, first.worth >= sentence.worth else {
            gga = sentence
            return
        }
        if !sentence.isNull, let quality = sentence.quality, let known = first.quality,
            quality.rawValue > known.rawValue
        {
            gga?.quality = quality
        }
    }

    mutating func add(_ sentence: GNS) {
        note(sentence.coordinate, .gns)
        if gns == nil || (gns?.quality == nil && sentence.quality != nil) || (gns?.isNull == true && !sentence.isNull) {
            gns = sentence
        }
        guard let quality = sentence.quality else { return }
        take(sentence.coordinate)
        if letterQuality == nil { letterQuality = quality }
    }

    @inline(__always)
    mutating func add(_ gll: GLL) {
        note(gll.coordinate, .gll)
        guard gll.isValid else { return }
        isGLLValid = true
        take(gll.coordinate)
        if letterQuality == nil { letterQuality = gll.quality }
    }

    @inline(__always)
    private mutating func note(_ coordinate: Coordinate?, _ kind: Contents) {
        if let coordinate, coordinate.isNull { hasNull = true } else { meant.insert(kind) }
    }

    @inline(__always)
    private mutating func take(_ new: Coordinate?) {
        if coordinate == nil || coordinate?.isNull == true && new?.isNull == false { coordinate = new }
    }

    /// The date of the epoch in days since 1970-01-01. RMC comes first: its date is next to a status, ZDA's may be that of
    /// the receiver's own clock.
    var day: Int? {
        if let rmcDay { return rmcDay }
        guard let clock = accessories.clock ?? clockAhead else { return nil }
        return timeOfDay.map { clock.day(of: $0) } ?? clock.day
    }

    /// What some sentences said against the others of their fix. The fix counts all the same.
    struct Disagreement: OptionSet {
        let rawValue: UInt8
        /// 0°/0° beside a position: of another source on the line, which has none.
        static let nullPosition = Disagreement(rawValue: 1)
        /// A quality of GGA that is not known.
        static let quality = Disagreement(rawValue: 2)
        /// GSA without a fix.
        static let mode = Disagreement(rawValue: 4)
    }

    /// Leaves 0°/0° out where another sentence has a position. Call it once, before ``fix``.
    mutating func resolve() -> Disagreement {
        var found: Disagreement = []
        if hasNull, claimsFix {
            found.insert(.nullPosition)
            if rmc?.isNull == true { (rmc, rmcDay) = (nil, nil) }
            if gga?.isNull == true { gga = nil }
            if gns?.isNull == true { gns = nil }
            contents.subtract(Contents.makesEpoch.subtracting(meant))
        }
        if let gga, gga.quality == nil, gga.saysQuality { found.insert(.quality) }
        if accessories.mode == FixMode.none { found.insert(.mode) }
        return found
    }

    /// RMC decides alone when it is there, so that its V beats a GGA quality; then GGA, GNS, GLL.
    private var isValid: Bool {
        if gga?.quality == FixQuality.none { return false }
        if accessories.denyFix(of: talker) { return false }
        if contents.contains(.rmc) { return rmc != nil }
        if let gga, gga.quality != nil { return true }
        if let gns { return gns.quality != nil }
        return isGLLValid
    }

    private var hdop: Double? { gga?.hdop ?? gns?.hdop ?? accessories.hdop }
    private var satellitesUsed: Int? { gga?.satellitesUsed ?? gns?.satellitesUsed }
    private var gsaMode: FixMode? { accessories.mode == FixMode.none ? nil : accessories.mode }

    /// The fix without UTC and accuracy; nil = the epoch has none. Without a time of day it has none, whatever its flags say.
    var fix: Fix? {
        guard isValid, let timeOfDay, let coordinate = gga?.coordinate ?? coordinate else { return nil }
        let altitude = gga?.altitude ?? gns?.altitude
        let separation = gga?.altitude == nil ? gns?.geoidSeparation : gga?.geoidSeparation
        let altitudeHAE = altitude.flatMap { altitude in separation.map { altitude + $0 } }
        let hasHeight = altitude != nil && (satellitesUsed ?? 0) >= 4
        return Fix(
            time: nil, timeOfDay: timeOfDay, at: at, coordinate: coordinate, altitudeMSL: altitude,
            altitudeHAE: altitudeHAE, speed: rmc?.speed ?? accessories.speed,
            course: rmc?.course ?? accessories.course, hdop: hdop, satellitesUsed: satellitesUsed,
            mode: gsaMode ?? (hasHeight ? .threeD : .twoD), quality: gga?.quality ?? letterQuality ?? .gps)
    }

    /// The epoch where it has no fix.
    var void: VoidEpoch {
        VoidEpoch(
            time: nil, timeOfDay: timeOfDay, at: at, reason: isValid && timeOfDay != nil ? .noPosition : .void,
            quality: gga?.quality ?? FixQuality.none, satellitesUsed: satellitesUsed, hdop: hdop)
    }
}

extension Coordinate {
    /// Exactly 0°/0°, which sources report that have no position.
    var isNull: Bool { latitudeE7 == 0 && longitudeE7 == 0 }
}
