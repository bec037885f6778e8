import Sensors
import WaypostCore
import WaypostNMEA

/// What is remembered of a source over a restart.
struct SourceMemory: Hashable {
    /// Format of the stored bytes; another one is not read.
    static let version = 3

    var version = SourceMemory.version
    /// How far a file was read; nil for everything else.
    var position: FilePosition?
    /// The speed that a search found on a serial line.
    var baud: Int?
    /// The last time on which receiver and host agreed.
    var trusted: UTCTime?
    /// The receiver, as its source names it, and its newest date whose repair the host's synchronised clock confirmed.
    var receiver = ""
    var repaired: UTCTime?
}

extension SourceMemory: StateCoded {
    static var blank: SourceMemory { SourceMemory() }

    /// As it is kept in the queue.
    var bytes: [UInt8] { StateCoder.bytes(of: self) }

    /// nil when the bytes are damaged or of another version.
    init?(bytes: [UInt8]) {
        guard let memory = StateCoder.value(bytes, as: SourceMemory()), memory.version == Self.version else {
            return nil
        }
        self = memory
    }

    mutating func code(_ coder: inout StateCoder) {
        coder.code(&version)
        coder.code(&position)
        coder.code(&baud)
        coder.code(&trusted)
        coder.code(&receiver)
        coder.code(&repaired)
    }
}

extension FilePosition: StateCoded {
    package static var blank: FilePosition { FilePosition(device: 0, inode: 0, resume: .start) }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&device)
        coder.code(&inode)
        coder.code(&resume.offset)
        coder.code(&resume.time)
    }
}
