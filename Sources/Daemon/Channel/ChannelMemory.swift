import Channel
import WaypostCore

/// What is remembered of live channels over a restart: the location that viewers saw last.
struct ChannelMemory: Hashable {
    struct Seen: Hashable {
        /// Name of the channel.
        var channel = ""
        var trackable = ""
        var feature = ChannelFeature.blank
    }

    /// Format of the stored bytes; another one is not read.
    static let version = 1

    /// Until the end of the year 9999.
    private static let times: ClosedRange<Int64> = 0...253_402_300_799_999

    private var version = ChannelMemory.version
    private(set) var seen: [Seen] = []

    init() {}

    /// - Returns: nil where there is no channel, so that nothing is stored.
    init?(_ channels: [ChannelDelivery]) {
        guard !channels.isEmpty else { return nil }
        seen = channels.flatMap { channel in
            channel.seen.map {
                Seen(channel: channel.config.endpoint.settings.name, trackable: $0.trackable, feature: $0.feature)
            }
        }
    }

    /// By trackable.
    func seen(on channel: String) -> [String: ChannelFeature] {
        Dictionary(
            seen.filter { $0.channel == channel }.map { ($0.trackable, $0.feature) }, uniquingKeysWith: { $1 })
    }
}

extension ChannelMemory: StateCoded {
    static var blank: ChannelMemory { ChannelMemory() }

    /// As it is kept in the queue.
    var bytes: [UInt8] { StateCoder.bytes(of: self) }

    /// nil when the bytes are damaged or of another version.
    init?(bytes: [UInt8]) {
        guard let memory = StateCoder.value(bytes, as: ChannelMemory()), memory.version == Self.version else {
            return nil
        }
        self = memory
        // Beyond it the arithmetic of times would end.
        seen.removeAll { !Self.times.contains($0.feature.time.milliseconds) }
    }

    mutating func code(_ coder: inout StateCoder) {
        coder.code(&version)
        coder.code(&seen)
    }
}

extension ChannelMemory.Seen: StateCoded {
    static var blank: Self { Self() }

    mutating func code(_ coder: inout StateCoder) {
        coder.code(&channel)
        coder.code(&trackable)
        coder.code(&feature)
    }
}

extension ChannelFeature: StateCoded {
    package static var blank: ChannelFeature {
        ChannelFeature(coordinate: .blank, altitude: nil, accuracy: 1, bearing: nil, speed: nil, time: .blank)
    }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&coordinate)
        coder.code(&altitude)
        coder.code(&accuracy)
        coder.code(&bearing)
        coder.code(&speed)
        coder.code(&time)
    }
}
