import CLinux
import Glibc
import WaypostCore
import WaypostNMEA

/// Looks at what a serial line brings, at one speed after another. It writes nothing to it.
package enum SerialProbe {
    package static let timePerSpeed = Duration.milliseconds(2500)
    private static let bytesMax = 64 * 1024
    /// A line on which nothing comes at two speeds brings nothing at others either.
    private static let silentSpeedsMax = 2

    /// What the bytes of one speed are.
    package enum Sample: Hashable, Sendable {
        case nothing
        /// Another speed, or a protocol that is not known here.
        case noise
        case nmea(sentences: Int)
        /// Frames of u-blox's own protocol.
        case ubx

        /// - Parameter bytes: as they came at one speed.
        package init(_ bytes: [UInt8]) {
            var decoder = NMEADecoder(settings: .init(live: true))
            decoder.decode(bytes.span, at: .zero) { _, _ in }
            let sentences = decoder.counters.sentences
            // One good checksum may come by chance.
            self =
                sentences > 1
                ? .nmea(sentences: sentences) : Self.hasUBX(bytes) ? .ubx : bytes.isEmpty ? .nothing : .noise
        }

        /// A whole frame: two sync bytes, class, id, length, payload, and Fletcher's checksum.
        private static func hasUBX(_ bytes: [UInt8]) -> Bool {
            bytes.indices.dropLast(7).contains { start in
                guard bytes[start] == 0xB5, bytes[start + 1] == 0x62 else { return false }
                let end = start + 6 + Int(bytes[start + 4]) + Int(bytes[start + 5]) << 8
                guard end + 1 < bytes.count else { return false }
                var (a, b): (UInt8, UInt8) = (0, 0)
                for byte in bytes[(start + 2)..<end] { (a, b) = (a &+ byte, b &+ a &+ byte) }
                return bytes[end] == a && bytes[end + 1] == b
            }
        }
    }

    package struct Finding: Hashable, Sendable {
        package var sample: Sample
        /// At which that came; nil where nothing that is known came at any.
        package var speed: LineSpeed?
    }

    /// - Parameters:
    ///   - path: of the line, which is locked meanwhile, and stays raw: else it would echo what comes.
    ///   - limit: for all speeds.
    ///   - progress: a speed is tried.
    /// - Throws: `SourceProblem` where it cannot be opened.
    package static func search(
        _ path: String, within limit: Duration, _ progress: (LineSpeed) -> Void
    ) throws(SourceProblem) -> Finding {
        let end = EventTime(nanoseconds: waypost_boottime_ns()) + limit
        let port = try SerialPort(path: path, readsOnly: true)
        var speeds: [LineSpeed] = []
        for speed in [port.speed] + BaudHunt.usualSpeeds.map({ LineSpeed(baud: $0) }) {
            if let speed, !speeds.contains(speed) { speeds.append(speed) }
        }
        var hasBytes = false
        for (index, speed) in speeds.enumerated() {
            let now = EventTime(nanoseconds: waypost_boottime_ns())
            guard now < end, hasBytes || index < silentSpeedsMax else { break }
            progress(speed)
            do throws(SourceProblem) { try port.configure(speed) } catch { continue }
            let sample = sample(of: port, until: min(end, now + timePerSpeed))
            switch sample {
            case .nmea, .ubx: return Finding(sample: sample, speed: speed)
            case .noise: hasBytes = true
            case .nothing: break
            }
        }
        return Finding(sample: hasBytes ? .noise : .nothing, speed: nil)
    }

    /// Reads until it is clear what comes, or the time is over.
    private static func sample(of port: SerialPort, until end: EventTime) -> Sample {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: SerialPort.bufferBytes)
        while bytes.count < bytesMax {
            let left = end.duration(since: EventTime(nanoseconds: waypost_boottime_ns()))
            guard left > .zero else { break }
            var ready = pollfd(fd: port.fd, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, Int32(clamping: left.milliseconds + 1)) > 0 else { continue }
            let count = read(port.fd, &chunk, chunk.count)
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += chunk[..<count]
            if case .nmea(BaudHunt.sentencesToAccept...) = Sample(bytes) { break }
        }
        return Sample(bytes)
    }
}
