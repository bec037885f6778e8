import WaypostCore

/// A scalar to be written into a request.
enum RenderedValue: Hashable, Sendable {
    case int(Int64)
    /// `scaled` · 10^−`places`; always written with a fraction.
    case decimal(Int64, places: Int)
    case bool(Bool)
    case text(String)
    /// Instead of a secret: written verbatim, without escapes.
    case masked
    /// Written as `null` in JSON, as nothing elsewhere.
    case null
}

extension QueuedLocation {
    /// The value of a name of type int or float, in units of its last decimal; nil when unknown.
    func scaled(_ name: RecordName) -> Int64? {
        switch name {
        case .seq: seq
        case .timeMs, .timeSFloat: time?.milliseconds
        case .timeS: time?.milliseconds.flooredThousandth
        case .timeNs: time?.milliseconds.saturated(times: 1_000_000)
        case .receivedMs: receivedMs
        case .dateMs: date.milliseconds
        case .beaconMajor: location.beaconPart(1).flatMap { Int64($0) }
        case .beaconMinor: location.beaconPart(2).flatMap { Int64($0) }
        case .clockMs: location.isPlaced ? nil : receivedMs
        case .lat, .latE7: coordinate.map { Int64($0.latitudeE7) }
        case .lon, .lonE7: coordinate.map { Int64($0.longitudeE7) }
        case .altitude: Scaled.altitude(location.altitudeMSL)
        case .altitudeHAE: Scaled.altitude(location.altitudeHAE)
        case .accuracy: Scaled.accuracy(location.horizontalAccuracy)
        case .hdop: Scaled.hdop(location.hdop)
        case .satellites: location.satellitesUsed.map(Int64.init)
        case .speedMPS: Scaled.speed(location.speed)
        // From cm/s, so that a row gives the same digits before and after it was in the queue.
        case .speedKMH: Scaled.speed(location.speed)?.scaled(by: 36, over: 10)
        case .speedKnots: Scaled.speed(location.speed)?.scaled(by: 3600, over: 1852)
        case .speedMPH: Scaled.speed(location.speed)?.scaled(by: 100_000, over: 44_704)
        case .bearing: Scaled.course(location.course)
        case .odometer: Scaled.odometer(location.odometer)
        case .odometerKM: Scaled.odometer(location.odometer)?.scaled(by: 1, over: 10)
        case .activityConfidence: location.activity.map { Int64($0.confidence) }
        case .batteryPct, .batteryFrac: location.power.batteryPercent.map(Int64.init)
        case .batteryBS: location.power.batteryState.code
        default: location.trip.flatMap { $0.scaled(name) }
        }
    }

    func flag(_ name: RecordName) -> Bool? {
        switch name {
        case .simulated: location.simulated ? true : nil
        case .moving: location.moving
        case .charging: location.power.charging
        case .externalPower: location.power.externalPower
        case .published: location.published
        default: nil
        }
    }

    /// Text of the row alone: not `id`, `row_trackable` and `row_boot_id`.
    func word(_ name: RecordName) -> String? {
        switch name {
        case .trackable: location.trackable
        case .bootID: bootID
        case .timeISO: time?.iso8601
        case .timeISOSeconds: time?.iso8601Seconds
        case .fixMode:
            switch location.mode {
            case .twoD: "2d"
            case .threeD: "3d"
            case .some(.none), nil: nil
            }
        case .quality: location.quality?.word
        case .motionWord: location.moving ? "driving" : "stationary"
        case .activity: location.activity?.kind.rawValue
        case .activityWord: location.activity?.kind.motionWord ?? word(.motionWord)
        case .event: location.event == .none ? nil : location.event.rawValue
        case .reason: location.reason
        case .settings: location.settings
        case .batteryState: location.power.batteryState.word
        case .ssid: location.network?.ssid
        case .bssid: location.network?.bssid
        case .ip: location.network?.ip
        case .beaconUUID: location.beaconPart(0)
        case .geofenceID: crossing?.id
        case .geofenceName: crossing?.name
        case .geofenceServerID: crossing?.serverID
        case .geofenceAction: crossing?.action.rawValue
        case .geofenceSource: crossing.map { $0.source == .beacon ? "BEACON" : "DEVICE" }
        case .geofenceTransition: crossing?.action.transition
        case .geofenceBeacon: crossing?.source == .beacon ? "BEACON" : nil
        default: nil
        }
    }

    private var time: UTCTime? { location.isPlaced ? location.time : nil }

    private var coordinate: Coordinate? { location.isPlaced ? location.coordinate : nil }

    private var crossing: GeofenceCrossing? { location.event == .beacon ? nil : location.geofence }
}

extension Location {
    /// Of `UUID/major/minor`, the beacon that was seen; nil in all other records.
    fileprivate func beaconPart(_ index: Int) -> String? {
        guard event == .beacon, let id = geofence?.id else { return nil }
        let parts = id.split(separator: "/")
        return parts.count == 3 ? String(parts[index]) : nil
    }
}

extension TripSummary {
    fileprivate func scaled(_ name: RecordName) -> Int64? {
        switch name {
        case .tripStartMs: start.milliseconds
        case .tripStartLat: Int64(startCoordinate.latitudeE7)
        case .tripStartLon: Int64(startCoordinate.longitudeE7)
        case .tripEndMs: end.milliseconds
        case .tripDistance: Scaled.odometer(distance)
        case .tripDuration: Scaled.integer(Double(end.milliseconds(since: start)) / 1000, places: 1)
        case .tripIdle: Scaled.integer(idle, places: 1)
        case .tripMaxSpeed: Scaled.speed(maxSpeed)
        default: nil
        }
    }
}

extension Activity.Kind {
    /// As Overland says it.
    fileprivate var motionWord: String {
        switch self {
        case .still: "stationary"
        case .onFoot: "walking"
        case .running: "running"
        case .onBicycle: "cycling"
        case .inVehicle: "driving"
        }
    }
}

extension PowerState {
    /// The first that holds.
    fileprivate var batteryState: (word: String, code: Int64) {
        if externalPower == true, let batteryPercent, batteryPercent >= 99 { return ("full", 3) }
        return switch charging {
        case true?: ("charging", 2)
        case nil: ("unknown", 0)
        case false?: ("unplugged", 1)
        }
    }
}

extension UTCTime {
    /// `2020-02-06T18:14:34Z`.
    var iso8601Seconds: String { String(iso8601.dropLast(5)) + "Z" }
}

extension Int64 {
    /// Milliseconds as whole seconds, rounded down also before 1970.
    var flooredThousandth: Int64 { self >= 0 ? self / 1000 : (self + 1) / 1000 - 1 }

    func saturated(times factor: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        return overflow ? (self > 0 ? .max : .min) : product
    }

    /// `self` · `factor` / `divisor`, half away from zero; nil beyond the range.
    func scaled(by factor: Int64, over divisor: Int64) -> Int64? {
        let (product, overflow) = multipliedReportingOverflow(by: factor)
        guard !overflow else { return nil }
        return product.dividedHalfAway(by: divisor.magnitude)
    }

    /// Half away from zero.
    func dividedHalfAway(by divisor: UInt64) -> Int64 {
        let (quotient, rest) = magnitude.quotientAndRemainder(dividingBy: divisor)
        let rounded = Int64(clamping: rest >= divisor - divisor / 2 ? quotient + 1 : quotient)
        return self < 0 ? -rounded : rounded
    }
}

extension GeofenceCrossing.Action {
    fileprivate var transition: String? {
        switch self {
        case .enter: "enter"
        case .exit: "leave"
        case .dwell: nil
        }
    }
}
