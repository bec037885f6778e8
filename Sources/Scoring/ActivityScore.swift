import DriveSimulation
import WaypostCore
import WaypostNMEA
import WaypostTracking

/// How long each answer was given while a receiver travelled in one way, or several scores added up.
package struct ActivityScore: Sendable {
    /// What is true, as a row of the table.
    package enum Truth: String, Hashable, Sendable, CaseIterable {
        case parked
        case onFoot = "on foot"
        case running
        case onBicycle = "on a bicycle"
        case inVehicle = "in a vehicle"
        /// A vehicle that stands within a trip.
        case vehicleStanding = "  the same, standing"
        /// Someone on foot or on a bicycle who stands within a trip.
        case standing = "standing on the way"

        /// Answers that are right.
        func accepts(_ answer: Activity.Kind?, travelling: Activity.Kind) -> Bool {
            switch self {
            case .parked: answer == .still
            case .standing, .vehicleStanding: answer == .still || answer == travelling
            case .onFoot, .running, .onBicycle, .inVehicle: answer == travelling
            }
        }
    }

    /// Milliseconds of a phase that are not judged: a few steps say nothing.
    static let leftOut = 30_000
    /// m/s of the truth.
    private static let standstill = 0.05

    /// Milliseconds by truth and answer; nil = unknown.
    package private(set) var counts: [Truth: [Activity.Kind?: Int]] = [:]
    package private(set) var right: [Truth: Int] = [:]
    /// Changes of the answer while the truth did not change.
    package private(set) var flaps = 0

    package init() {}

    package var total: Int { counts.values.reduce(0) { $0 + $1.values.reduce(0, +) } }
    package var totalRight: Int { right.values.reduce(0, +) }

    mutating func count(
        _ truth: Truth, travelling: Activity.Kind, _ answer: Activity.Kind?, for milliseconds: Int
    ) {
        counts[truth, default: [:]][answer, default: 0] += milliseconds
        if truth.accepts(answer, travelling: travelling) { right[truth, default: 0] += milliseconds }
    }

    package mutating func add(_ other: ActivityScore) {
        for (truth, answers) in other.counts {
            counts[truth, default: [:]].merge(answers) { $0 + $1 }
        }
        right.merge(other.right) { $0 + $1 }
        flaps += other.flaps
    }

    // MARK: Simulated

    /// A drive as NMEA bytes through decoding and tracking.
    package init(of simulated: SimulatedDrive, thinning: Int = 1) {
        var drive = simulated
        let start = drive.settings.start
        let samples = drive.truth.samples
        let phases = Self.phases(samples)
        let period = drive.settings.period
        var decoder = NMEADecoder(settings: .init())
        var clock = LogClock()
        var run = Self.tracker
        var score = ActivityScore()
        var last: (Activity.Kind?, since: Int)?
        func take(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            guard at > .zero else { return }
            run.epochReceived(epoch, at: at) { _, _ in }
            guard case .fix(let fix) = epoch, let time = fix.time else { return }
            let index = Int(time.milliseconds(since: start)) / period
            guard samples.indices.contains(index) else { return }
            let (sample, since) = (samples[index], phases[index])
            guard sample.elapsed - since >= Self.leftOut else { return }
            let answer = run.tracker.snapshot.activity?.kind
            if let last, last.since == since, last.0 != answer { score.flaps += 1 }
            last = (answer, since)
            let truth = Self.truth(sample.activity, stands: sample.speed < Self.standstill)
            score.count(truth, travelling: sample.activity, answer, for: period * max(1, thinning))
        }
        var index = 0
        while let bytes = drive.nextEpoch() {
            if index % max(1, thinning) == 0, !bytes.isEmpty {
                decoder.decode(bytes.span, at: .zero) { epoch, _ in take(epoch) }
            }
            index += 1
        }
        decoder.endOfInput { epoch, _ in take(epoch) }
        self = score
    }

    /// When the phase of each sample began: the way of travelling changed.
    private static func phases(_ samples: [DriveTruth.Sample]) -> [Int] {
        var since = 0
        var activity = Activity.Kind.still
        return samples.map { sample in
            if sample.activity != activity { (since, activity) = (sample.elapsed, sample.activity) }
            return since
        }
    }

    private static func truth(_ activity: Activity.Kind, stands: Bool) -> Truth {
        switch activity {
        case .still: .parked
        case .onFoot: stands ? .standing : .onFoot
        case .running: stands ? .standing : .running
        case .onBicycle: stands ? .standing : .onBicycle
        case .inVehicle: stands ? .vehicleStanding : .inVehicle
        }
    }

    // MARK: Recorded

    /// m/s below which a recorded vehicle stands, by its receiver.
    private static let standingSpeed = 0.5
    /// Milliseconds that a fix stands for at most: a gap says nothing.
    private static let recordedMax = 10_000

    /// A log during which the receiver travelled in one way.
    package init(of log: [UInt8], travelling activity: Activity.Kind) {
        var decoder = NMEADecoder(settings: .init())
        var clock = LogClock()
        var run = Self.tracker
        var score = ActivityScore()
        var first: EventTime?
        var last = EventTime.zero
        func take(_ epoch: Epoch) {
            let at = clock.time(of: epoch)
            guard at > .zero else { return }
            run.epochReceived(epoch, at: at) { _, _ in }
            guard case .fix(let fix) = epoch, fix.time != nil else { return }
            first = first ?? at
            let elapsed = min(Self.recordedMax, Int(at.duration(since: last).milliseconds))
            last = at
            guard let first, at.duration(since: first).milliseconds >= Self.leftOut else { return }
            let truth = Self.truth(activity, stands: (fix.speed ?? 1) < Self.standingSpeed)
            score.count(truth, travelling: activity, run.tracker.snapshot.activity?.kind, for: elapsed)
        }
        decoder.decode(log.span, at: .zero) { epoch, _ in take(epoch) }
        decoder.endOfInput { epoch, _ in take(epoch) }
        self = score
    }

    private static var tracker: TrackerRun {
        TrackerRun(tracker: Tracker(settings: Tracker.Settings(trackables: [Trackable(id: "asset")]), restored: nil))
    }
}
