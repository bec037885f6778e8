import WaypostCore

extension MotionDetector {
    /// What counts as moving and as parked. Durations run on event time, distances are metres.
    public struct Settings: Hashable, Sendable {
        /// How long the asset must stand before it is parked. The default is 5 min. Below 3 min deliveries and long lights
        /// split a trip; 0 makes every halt a stop.
        public var stopTimeout = Duration.seconds(300)
        /// Metres per second of the speed vector over 5 s below which a moving asset stands. The default is 0.5: below a
        /// slow walk, above the noise of a parked receiver.
        public var stillSpeed = 0.5
        /// Radius of the stationary geofence, at least 10. The default is 25. Leaving it needs evidence too.
        public var stationaryRadius = 25.0
        /// Distance from the parking place at which the asset has left without any evidence of speed, at least 100 and at
        /// least `stationaryRadius`. The default is 200.
        public var backupRadius = 200.0
        /// Metres of agreed movement that start a trip beyond the radius. The default is 15. Below 8 a canyon starts trips.
        public var startEvidence = 15.0
        /// Metres of agreed movement that start a trip outside the radius by more than the accuracy. The default is 8.
        public var outsideEvidence = 8.0
        /// Metres of agreed movement that end a halt within a trip. The default is 8: a false resume costs little, a
        /// false stop costs a trip.
        public var resumeEvidence = 8.0
        /// Fixes in a row (at 1 Hz; at higher rates as many seconds) that must agree before a trip starts. The default
        /// is 2; 1 starts a false trip every few days in a street canyon.
        public var consecutiveFixes = 2
        /// Further time that the evidence must persist before a trip starts. The default is 0.
        public var motionTriggerDelay = Duration.zero
        /// Fixes that are less accurate never form an anchor; at most 50. The default is 30.
        public var anchorAccuracy = 30.0
        /// While parked a record at least this often; zero = none. The default is 10 min.
        public var heartbeat = Duration.seconds(600)
        /// Time without a believed fix that is recorded as a gap; three measured intervals if that is longer. The default
        /// is 60 s.
        public var gapAfter = Duration.seconds(60)
        /// A moving asset without a believed fix for this long is parked where it was last seen. The default is 30 min,
        /// longer than the drive through any road tunnel.
        public var noFixTimeout = Duration.seconds(1800)
        /// Stop timeout once external power went off while standing. The default is 60 s.
        public var powerOffStop = Duration.seconds(60)
        /// Fixes kept in memory for dating a departure back, at most 64 KiB of them, thinned to 1 Hz. The default is
        /// 10 min; below 30 s departures are recorded late.
        public var ring = Duration.seconds(600)
        /// Hold the position while standing, so that the drift of a parked receiver stays out of the record. The default
        /// is true.
        public var staticNavigation = true
        /// No halt ends a trip: only `pace` and `noFixTimeout` do. The default is false.
        public var disableStopDetection = false
        /// After a stop that was not requested, sleep until `pace moving`: for assets that are followed on demand. The default
        /// is false.
        public var stopOnStationary = false
        /// `pace moving` at every start. The default is false.
        public var startMoving = false
        /// External power starts a trip by itself (vehicle boxes whose power is the ignition). The default is false: an
        /// idling or charging asset has not left.
        public var powerStartsTrip = false

        public init() {}
    }
}
