import WaypostCore

/// What the TPV objects of one epoch have said so far: gpsd reports an epoch several times, while its sentences come in.
struct GPSDDraft: Sendable {
    let device: String?
    /// Arrival of the first of them.
    var at: EventTime
    /// As gpsd reports it; nil = none of them has a time.
    private(set) var time: UTCTime?
    private var mode = 0
    private var status = 0
    private var coordinate: Coordinate?
    private var altitudeMSL: Double?
    private var altitudeHAE: Double?
    private var speed: Double?
    private var course: Double?
    private(set) var horizontalError: Double?

    init(_ position: GPSDPosition, at: EventTime) {
        device = position.device
        self.at = at
        add(position)
    }

    /// The last value of each key counts, and the last mode decides.
    mutating func add(_ position: GPSDPosition) {
        time = position.time ?? time
        mode = position.mode ?? mode
        status = position.status ?? status
        coordinate = position.coordinate ?? coordinate
        altitudeMSL = position.altitudeMSL ?? altitudeMSL
        altitudeHAE = position.altitudeHAE ?? altitudeHAE
        speed = position.speed ?? speed
        course = position.course ?? course
        horizontalError = position.horizontalError ?? horizontalError
    }

    /// Whether a TPV object with this time belongs to the same epoch. Before a receiver knows a time, its epochs are
    /// distinguished by silence alone.
    func isContinued(by position: GPSDPosition) -> Bool {
        guard position.device == device else { return false }
        return time == nil || position.time == time
    }

    private var quality: FixQuality {
        switch status {
        case 2: .dgps
        case 3: .rtk
        case 4: .rtkFloat
        case 5, 6: .deadReckoning
        case 7: .manual
        case 8: .simulated
        case 9: .pps
        default: .gps
        }
    }

    /// The epoch without UTC and accuracy. A fix that has no time has the time of day 0, and stays without a date.
    func solution(hdop: Double?, satellitesUsed: Int?) -> Epoch {
        guard mode >= 2, let coordinate else {
            return .void(
                VoidEpoch(
                    time: nil, timeOfDay: time?.timeOfDay, at: at, reason: mode >= 2 ? .noPosition : .void,
                    satellitesUsed: satellitesUsed, hdop: hdop))
        }
        return .fix(
            Fix(
                time: nil, timeOfDay: time?.timeOfDay ?? 0, at: at, coordinate: coordinate, altitudeMSL: altitudeMSL,
                altitudeHAE: altitudeHAE, speed: speed, course: course, hdop: hdop, satellitesUsed: satellitesUsed,
                mode: mode >= 3 ? .threeD : .twoD, quality: quality))
    }
}
