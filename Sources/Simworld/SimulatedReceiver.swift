import DriveSimulation
import Glibc
import Sensors
import WaypostCore
import WaypostNMEA

/// What is tracked: it drives and parks whatever becomes of the process.
final class Asset {
    enum Reception {
        case good, silent, unplugged
        /// Sentences come, without a position.
        case void
        /// Without the sentence that has the date.
        case dateless
        /// Bytes are lost and changed on the line.
        case garbled
    }

    private static let plane = LocalPlane(origin: Coordinate(latitudeE7: 525_000_000, longitudeE7: 134_000_000))
    private let dice: Dice
    private var place = PlanePoint.zero
    private var heading = 1.0
    private var speed = 0.0
    private var isDriving: Bool
    private var phaseEnds: EventTime
    private var last: EventTime
    /// It turns back when it is this far from where it began, metres.
    private let range: Double
    /// Seconds of a drive, and of a halt.
    private let drive, park: ClosedRange<Double>
    /// Between two fixes while it drives, and while it stands.
    let interval, parkedInterval: Double
    /// What the receiver's date is off by.
    var spoofMs: Int64 = 0
    /// Unix milliseconds of the world's zero.
    let epochMs: Int64
    var reception = Reception.good

    init(dice: Dice, at time: EventTime, epochMs: Int64, isLong: Bool) {
        self.dice = dice
        self.epochMs = epochMs
        last = time
        drive = isLong ? 60...400 : 200...1500
        park = isLong ? 4000...20_000 : 60...600
        interval = dice.pick([1, 1, 1, 2, 5])
        parkedInterval = isLong ? 30 : interval
        isDriving = dice.chance(0.7)
        range = dice.pick([700, .infinity])
        phaseEnds = time + .seconds(Int64(dice.between(100, 400)))
    }

    func pause() -> Duration {
        .milliseconds(Int64((isDriving ? interval : parkedInterval) * 1000) + Int64(dice.from(-20...20)))
    }

    /// What the receiver says now; empty while it says nothing.
    func sentences(at time: EventTime) -> [UInt8] {
        move(until: time)
        let utc = UTCTime(milliseconds: epochMs + spoofMs + time.nanoseconds / 1_000_000)
        let noise = isDriving ? 2.0 : 0.7
        let fix = NoisyFix(
            place: place
                + PlanePoint(east: dice.between(-noise, noise), north: dice.between(-noise, noise)),
            speed: isDriving ? speed : dice.between(0, 0.15),
            course: (heading * 180 / .pi).magnitude.truncatingRemainder(dividingBy: 360),
            hdop: 0.9, satellites: 9, altitude: 40, sigma: 2)
        func say(_ sentences: NMEAWriter.Sentences, _ reception: DriveSimulation.Reception) -> [UInt8] {
            NMEAWriter(sentences: sentences).epoch(reception, at: utc, on: Self.plane)
        }
        switch reception {
        case .silent, .unplugged: return []
        case .good: return say([.rmc, .gga], .fix(fix))
        case .void: return say([.rmc, .gga], .void(knowsTime: true))
        case .dateless: return say(.gga, .fix(fix))
        case .garbled: return garbled(say([.rmc, .gga], .fix(fix)))
        }
    }

    private func move(until time: EventTime) {
        let seconds = min(60, max(0, time.seconds(since: last)))
        last = time
        if time >= phaseEnds {
            isDriving.toggle()
            let range = isDriving ? drive : park
            phaseEnds = time + .seconds(Int64(dice.between(range.lowerBound, range.upperBound)))
        }
        guard isDriving else { return speed = 0 }
        speed = max(3, min(30, speed + dice.between(-2, 2.5)))
        heading += dice.between(-0.15, 0.15)
        if (place.east * place.east + place.north * place.north).squareRoot() > range {
            heading = atan2(-place.east, -place.north)
        }
        place = place + PlanePoint(east: sin(heading), north: cos(heading)) * (speed * seconds)
    }

    private func garbled(_ bytes: [UInt8]) -> [UInt8] {
        bytes.compactMap { byte in
            switch dice.below(300) {
            case 0: nil
            case 1: UInt8(dice.below(256))
            default: byte
            }
        }
    }
}

/// The receiver of one process: sentences by its own timer, read by the decoder of every live line.
final class SimulatedReceiver: FixSource {
    private let asset: Asset
    private let host: SimulatedHost
    private var live: LiveStream
    private var nextBytes: EventTime?
    private var isPluggedIn = true
    let name = "simulated"
    var descriptor: Int32? { nil }
    var awaitsWritability: Bool { false }
    var counters: NMEACounters { live.counters }

    init(asset: Asset, host: SimulatedHost) {
        self.asset = asset
        self.host = host
        live = LiveStream(
            settings: .init(), staleness: asset.parkedInterval > 5 ? .seconds(100) : .seconds(5),
            strayCause: StrayCause.serial)
    }

    var nextDeadline: EventTime? {
        guard let nextBytes else { return nil }
        return min(nextBytes, live.nextDeadline ?? nextBytes)
    }

    func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        nextBytes = now + .milliseconds(300)
        act(deliver) { live.opened(at: now, &$0) }
    }

    func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}

    func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        act(deliver) { events in
            live.restEnded(at: now)
            if let nextBytes, now >= nextBytes {
                self.nextBytes = now + asset.pause()
                receive(at: now, &events)
            }
            live.deadlineReached(at: now, &events)
        }
    }

    private func receive(at now: EventTime, _ events: inout [SourceEvent]) {
        let isThere = if case .unplugged = asset.reception { false } else { true }
        if isThere != isPluggedIn {
            isPluggedIn = isThere
            if isThere { live.opened(at: now, &events) } else { live.lost("unplugged", at: now, &events) }
        }
        live.received(asset.sentences(at: host.time).span, at: now, bufferTime: nil, &events)
    }

    private func act(_ deliver: (SourceEvent) -> Void, _ body: (inout [SourceEvent]) -> Void) {
        var events: [SourceEvent] = []
        body(&events)
        for event in events { deliver(event) }
    }

    func setPaused(_ paused: Bool, at now: EventTime) {}
    func setAsleep(_ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void) -> Bool {
        false
    }
    func close() { nextBytes = nil }
}
