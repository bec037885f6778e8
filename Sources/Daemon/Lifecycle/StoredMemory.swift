import Queue
import WaypostNMEA
import WaypostTracking

/// What an earlier process stored in the queue about itself.
struct StoredMemory {
    /// nil = tracking begins as if for the first time.
    let tracker: StoredState?
    let source: SourceMemory?
    let channels: ChannelMemory
    let beacons: BeaconMemory

    /// - Parameter fromStart: a file is read from its beginning; state from its end would not fit.
    init(_ parts: PartStates, isFile: Bool, fromStart: Bool, _ log: AgentLog) {
        // A value that cannot be read was written by another version; the queue itself is good, so go on without it.
        func decode<Value>(_ bytes: [UInt8]?, _ what: String, _ decode: ([UInt8]) -> Value?) -> Value? {
            guard let bytes else { return nil }
            let value = decode(bytes)
            if value == nil { log.warning("the stored \(what) cannot be read; it starts from nothing") }
            return value
        }
        self.tracker =
            fromStart && isFile ? nil : decode(parts.tracker, "tracker state", StoredState.init(bytes:))
        self.source = fromStart ? nil : decode(parts.source, "source state", SourceMemory.init(bytes:))
        channels = decode(parts.channels, "state of live channels", ChannelMemory.init(bytes:)) ?? ChannelMemory()
        beacons = decode(parts.beacons, "state of beacons", BeaconMemory.init(bytes:)) ?? BeaconMemory()
    }
}
