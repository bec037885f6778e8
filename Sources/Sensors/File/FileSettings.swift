import WaypostCore
import WaypostNMEA

/// How a recorded stream of sentences is read.
package struct FileSettings: Sendable {
    /// The pace at which a log is handed over.
    package enum Playback: Hashable, Sendable {
        /// As fast as it is processed.
        case maximum
        /// By the times in the log: 1 = as it was recorded, 10 = ten times as fast. Pauses of the log are kept.
        case recorded(factor: Double)
    }

    /// A plain file, a FIFO, or `-` for standard input.
    package var path: String
    /// Continue with what is appended, also after the file was truncated or another took its name. A pipe that is followed
    /// counts as live from its first byte. The default is false: the end of the file is the end.
    package var follow: Bool
    /// The default is `maximum`.
    package var playback: Playback
    /// With `follow`, at the end of the file: time without a sentence after which the line is silent; three intervals of
    /// the receiver where that is longer. The default is 5 s.
    package var staleness: Duration
    package var decoder: NMEADecoder.Settings

    package init(
        path: String, follow: Bool = false, playback: Playback = .maximum, staleness: Duration = .seconds(5),
        decoder: NMEADecoder.Settings = .init()
    ) {
        self.path = path
        self.follow = follow
        self.playback = playback
        self.staleness = staleness
        self.decoder = decoder
    }
}

/// Where reading of a file began.
package enum FileStart: Hashable, Sendable {
    case fromBeginning
    /// After what an earlier run has processed.
    case resumed(offset: Int64)
    /// From the beginning although a position was given: it does not belong to this file.
    case positionRejected(reason: String)
}
