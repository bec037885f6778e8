import WaypostCore

/// What is remembered of beacons over a restart: the regions that the asset was in, so that each ENTER has its EXIT.
struct BeaconMemory: Hashable {
    /// Format of the stored bytes; another one is not read.
    private static let version = 1

    private var version = BeaconMemory.version
    private(set) var inside: [String] = []

    init(inside: [String] = []) { self.inside = inside }
}

extension BeaconMemory: StateCoded {
    static var blank: BeaconMemory { BeaconMemory() }

    /// As it is kept in the queue.
    var bytes: [UInt8] { StateCoder.bytes(of: self) }

    /// nil when the bytes are damaged or of another version.
    init?(bytes: [UInt8]) {
        guard let memory = StateCoder.value(bytes, as: BeaconMemory()), memory.version == Self.version else {
            return nil
        }
        self = memory
    }

    mutating func code(_ coder: inout StateCoder) {
        coder.code(&version)
        coder.code(&inside)
    }
}
