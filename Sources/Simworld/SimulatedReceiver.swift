import NMEA
import Positioning
import Sensors

/// What is tracked: it drives and parks whatever becomes of the process.
final class Asset {
    private let dice: Dice
    private var latitude = 52.5
    private var longitude = 13.4
    private var heading = 1.0
    private var speed = 0.0
    private var isDriving: Bool
    private var phaseEnds: EventTime
    private var last: EventTime
    /// Seconds of a drive, and of a halt.
    private let drive, park: ClosedRange<Double>
    /// Between two fixes while it drives, and while it stands.
    let interval, parkedInterval: Double
    /// What the receiver's date is off by.
    var spoofMs: Int64 = 0
    /// Unix milliseconds of the world's zero.
    let epochMs: Int64
    enum Reception { case good, silent, unplugged }
    var reception = Reception.good

    init(dice: Dice, at time: EventTime, epochMs: Int64, isLong: Bool) {
        self.dice = dice
        self.epochMs = epochMs
        last = time
        drive = isLong ? 120...600 : 200...1500
        park = isLong ? 4000...20_000 : 60...600
        interval = dice.pick([1, 1, 1, 2, 5])
        parkedInterval = isLong ? 30 : interval
        isDriving = dice.chance(0.7)
        phaseEnds = time + .seconds(Int64(dice.between(100, 400)))
    }

    func pause() -> Duration {
        .milliseconds(Int64((isDriving ? interval : parkedInterval) * 1000) + Int64(dice.from(-20...20)))
    }

    func fix(at time: EventTime, boot: EventTime) -> Fix? {
        let seconds = min(60, max(0, time.seconds(since: last)))
        last = time
        if time >= phaseEnds {
            isDriving.toggle()
            let range = isDriving ? drive : park
            phaseEnds = time + .seconds(Int64(dice.between(range.lowerBound, range.upperBound)))
        }
        if isDriving {
            speed = max(3, min(30, speed + dice.between(-2, 2.5)))
            heading += dice.between(-0.15, 0.15)
            latitude += speed * seconds * _cos(heading) / 111_195
            longitude += speed * seconds * _sin(heading) / 68_000
        } else {
            speed = 0
        }
        let ms = epochMs + spoofMs + time.nanoseconds / 1_000_000
        let noise = isDriving ? 2.0 : 0.7
        guard
            let place = Coordinate(
                latitude: latitude + dice.between(-noise, noise) / 111_195,
                longitude: longitude + dice.between(-noise, noise) / 68_000)
        else { return nil }
        return Fix(
            time: UTCTime(milliseconds: ms), timeOfDay: Int(((ms % 86_400_000) + 86_400_000) % 86_400_000), at: boot,
            coordinate: place,
            horizontalAccuracy: 4, speed: isDriving ? speed : dice.between(0, 0.15),
            course: isDriving ? (heading * 57.3).truncatingRemainder(dividingBy: 360).magnitude : nil, hdop: 0.9,
            satellitesUsed: 9, mode: .threeD, quality: .gps)
    }

    // Enough for a heading.
    private func _sin(_ x: Double) -> Double {
        let turn = x - (x / (2 * .pi)).rounded() * 2 * .pi
        let y = 4 / .pi * turn - 4 / (.pi * .pi) * turn * turn.magnitude
        return 0.225 * (y * y.magnitude - y) + y
    }
    private func _cos(_ x: Double) -> Double { _sin(x + .pi / 2) }
}

/// The receiver of one process: it gives fixes by its own timer.
final class SimulatedReceiver: FixSource {
    private let asset: Asset
    private let host: SimulatedHost
    private(set) var nextDeadline: EventTime?
    private var state = SourceState.opening
    let name = "simulated"
    var descriptor: Int32? { nil }
    var awaitsWritability: Bool { false }
    private(set) var counters = NMEACounters()

    init(asset: Asset, host: SimulatedHost) {
        self.asset = asset
        self.host = host
    }

    func start(at now: EventTime, _ deliver: (SourceEvent) -> Void) { nextDeadline = now + .milliseconds(300) }
    func descriptorReady(at now: EventTime, _ deliver: (SourceEvent) -> Void) {}

    func deadlineReached(at now: EventTime, _ deliver: (SourceEvent) -> Void) {
        nextDeadline = now + asset.pause()
        let wanted: SourceState =
            switch asset.reception {
            case .good: .receiving
            case .silent: .silent
            case .unplugged: .lost(reason: "unplugged")
            }
        if wanted != state {
            state = wanted
            deliver(.stateChanged(state))
        }
        guard asset.reception == .good, let fix = asset.fix(at: host.time, boot: now) else { return }
        counters.fixes += 1
        deliver(.epoch(.fix(fix), clock: .arrival(now), position: nil))
    }

    func setPaused(_ paused: Bool, at now: EventTime) {}
    func setAsleep(_ asleep: Bool, until: EventTime?, at now: EventTime, _ deliver: (SourceEvent) -> Void) -> Bool {
        false
    }
    func close() { nextDeadline = nil }
}
