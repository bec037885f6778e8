/// What parts of the daemon store about themselves beside the rows, each in its own format. nil = nothing is stored; in a
/// commit: as before.
package struct PartStates: Hashable, Sendable {
    /// As of the newest row.
    package var tracker: [UInt8]?
    /// What the source needs to continue after the newest row, such as the place in a file.
    package var source: [UInt8]?
    /// What viewers have seen on live channels.
    package var channels: [UInt8]?
    /// Which regions of beacons the asset is in.
    package var beacons: [UInt8]?

    package init(
        tracker: [UInt8]? = nil, source: [UInt8]? = nil, channels: [UInt8]? = nil, beacons: [UInt8]? = nil
    ) {
        self.tracker = tracker
        self.source = source
        self.channels = channels
        self.beacons = beacons
    }

    var isEmpty: Bool { self == PartStates() }

    /// Those that are given replace what was.
    mutating func update(_ new: PartStates) {
        tracker = new.tracker ?? tracker
        source = new.source ?? source
        channels = new.channels ?? channels
        beacons = new.beacons ?? beacons
    }
}

extension Database {
    func partStates() throws(OutboxError) -> PartStates {
        PartStates(
            tracker: try blob(.tracker), source: try blob(.file), channels: try blob(.channels),
            beacons: try blob(.beacons))
    }

    func store(_ states: PartStates) throws(OutboxError) {
        if let state = states.tracker { try store(.tracker, state) }
        if let state = states.source { try store(.file, state) }
        if let state = states.channels { try store(.channels, state) }
        if let state = states.beacons { try store(.beacons, state) }
    }
}
