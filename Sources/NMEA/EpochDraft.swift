import Positioning

/// What the sentences of one epoch have told so far.
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
    /// Milliseconds since midnight; nil until a sentence tells it.
    var timeOfDay: Int?
    /// Arrival of the first byte.
    var at: EventTime = .zero

    private var isRMCValid = false
    private var isGNSValid = false
    private var isGLLValid = false
    private var ggaQuality = FixQuality.none
    private var ggaCoordinate: Coordinate?
    /// Of the first valid RMC, GNS or GLL to arrive: positions of different sentences may differ by metres and are not
    /// mixed.
    private var coordinate: Coordinate?
    private var letterQuality: FixQuality?
    private var rmcDay: Int?
    private var zdaDay: Int?
    private var gga: Extras?
    private var gns: Extras?
    private var rmcSpeed: Double?
    private var rmcCourse: Double?
    private var vtgSpeed: Double?
    private var vtgCourse: Double?
    private var gsaMode: FixMode?
    private var gsaHDOP: Double?
    private var gst: Double?
    private var vendorAccuracy: Double?
    private var gbs: Double?

    /// What GGA and GNS tell besides the position.
    private struct Extras: Sendable {
        var satellitesUsed: Int?
        var hdop: Double?
        var altitude: Double?
        var geoidSeparation: Double?
    }

    var isEmpty: Bool { contents.isEmpty }
    var makesEpoch: Bool { !contents.isDisjoint(with: .makesEpoch) }

    @inline(__always)
    mutating func add(_ rmc: RMC) {
        contents.insert(.rmc)
        guard rmc.isValid else { return }
        if !isRMCValid {
            isRMCValid = true
            rmcSpeed = rmc.speed
            rmcCourse = rmc.course
            letterQuality = rmc.quality ?? letterQuality
        }
        if coordinate == nil { coordinate = rmc.coordinate }
        if rmcDay == nil { rmcDay = rmc.day }
    }

    /// Several in one epoch (a talker for each constellation): the first with the best verdict counts.
    @inline(__always)
    mutating func add(_ sentence: GGA) {
        contents.insert(.gga)
        if gga == nil || (ggaQuality == .none && sentence.quality != .none) {
            ggaCoordinate = sentence.coordinate
            gga = Extras(
                satellitesUsed: sentence.satellitesUsed, hdop: sentence.hdop, altitude: sentence.altitude,
                geoidSeparation: sentence.geoidSeparation)
        }
        if sentence.quality.rawValue > ggaQuality.rawValue { ggaQuality = sentence.quality }
    }

    mutating func add(_ sentence: GNS) {
        contents.insert(.gns)
        if let quality = sentence.quality {
            if !isGNSValid { gns = nil }
            isGNSValid = true
            if coordinate == nil { coordinate = sentence.coordinate }
            if letterQuality == nil { letterQuality = quality }
        }
        if gns == nil {
            gns = Extras(
                satellitesUsed: sentence.satellitesUsed, hdop: sentence.hdop, altitude: sentence.altitude,
                geoidSeparation: sentence.geoidSeparation)
        }
    }

    @inline(__always)
    mutating func add(_ gll: GLL) {
        contents.insert(.gll)
        guard gll.isValid else { return }
        isGLLValid = true
        if coordinate == nil { coordinate = gll.coordinate }
        if letterQuality == nil { letterQuality = gll.quality }
    }

    @inline(__always)
    mutating func add(_ vtg: VTG) {
        contents.insert(.accessory)
        if let speed = vtg.speed { vtgSpeed = speed }
        if let course = vtg.course { vtgCourse = course }
    }

    @inline(__always)
    mutating func add(_ gsa: GSA) {
        contents.insert(.accessory)
        // One constellation may say none while another has a solution.
        if let mode = gsa.mode, mode > gsaMode ?? .none { gsaMode = mode } else if gsaMode == nil { gsaMode = gsa.mode }
        if gsaHDOP == nil { gsaHDOP = gsa.hdop }
    }

    mutating func add(_ zda: ZDA) {
        contents.insert(.accessory)
        if let day = zda.day { zdaDay = day }
    }

    mutating func add(gst estimate: ErrorEstimate) {
        contents.insert(.accessory)
        gst = estimate.horizontal ?? gst
    }

    mutating func add(gbs estimate: ErrorEstimate) {
        contents.insert(.accessory)
        gbs = estimate.horizontal ?? gbs
    }

    mutating func add(vendor estimate: ErrorEstimate) {
        contents.insert(.accessory)
        vendorAccuracy = estimate.horizontal ?? vendorAccuracy
    }

    /// The date of the epoch in days since 1970-01-01. RMC comes first: its date stands beside a status, ZDA's may be
    /// that of the receiver's own clock.
    var day: Int? { rmcDay ?? zdaDay }

    /// RMC decides alone when it is there, so that its V beats a GGA quality; then GGA, GNS, GLL.
    private var isValid: Bool {
        if contents.contains(.gga), ggaQuality == .none { return false }
        if gsaMode == FixMode.none { return false }
        if contents.contains(.rmc) { return isRMCValid }
        if contents.contains(.gga) { return true }
        if contents.contains(.gns) { return isGNSValid }
        return isGLLValid
    }

    private var quality: FixQuality {
        contents.contains(.gga) ? ggaQuality : letterQuality ?? .gps
    }

    var hdop: Double? { gga?.hdop ?? gns?.hdop ?? gsaHDOP }
    var satellitesUsed: Int? { gga?.satellitesUsed ?? gns?.satellitesUsed }

    /// The accuracy that the receiver tells itself, metres.
    var toldAccuracy: Double? { gst ?? vendorAccuracy ?? gbs }

    /// The epoch without UTC and accuracy. Without a time of day it is void, whatever its flags say.
    var solution: Epoch {
        guard isValid, let timeOfDay else { return .void(voidEpoch(.void)) }
        guard let coordinate = ggaCoordinate ?? coordinate else { return .void(voidEpoch(.noPosition)) }
        let altitude = gga?.altitude ?? gns?.altitude
        var altitudeHAE: Double?
        if let gga, let msl = gga.altitude {
            altitudeHAE = gga.geoidSeparation.map { msl + $0 }
        } else if let gns, let msl = gns.altitude {
            altitudeHAE = gns.geoidSeparation.map { msl + $0 }
        }
        let hasHeight = altitude != nil && (satellitesUsed ?? 0) >= 4
        return .fix(
            Fix(
                time: nil, timeOfDay: timeOfDay, at: at, coordinate: coordinate, altitudeMSL: altitude,
                altitudeHAE: altitudeHAE, speed: rmcSpeed ?? vtgSpeed, course: rmcCourse ?? vtgCourse, hdop: hdop,
                satellitesUsed: satellitesUsed, mode: gsaMode ?? (hasHeight ? .threeD : .twoD), quality: quality))
    }

    private func voidEpoch(_ reason: NoFixReason) -> VoidEpoch {
        VoidEpoch(
            time: nil, timeOfDay: timeOfDay, at: at, reason: reason,
            quality: contents.contains(.gga) ? ggaQuality : .none,
            satellitesUsed: satellitesUsed, hdop: hdop)
    }
}
