import WaypostCore

/// Where decoding of the same stream can continue after an emitted epoch, in another process if need be.
public struct ResumePoint: Hashable, Sendable {
    /// Bytes of the stream before the first byte that belongs to no emitted epoch.
    public var offset: Int64
    /// Date and time of the newest dated epoch: what turns a following time of day into UTC. nil = dateless so far.
    public var time: UTCTime?

    public init(offset: Int64, time: UTCTime?) {
        self.offset = offset
        self.time = time
    }

    public static let start = ResumePoint(offset: 0, time: nil)
}
