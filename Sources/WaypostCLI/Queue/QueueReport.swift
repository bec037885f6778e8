import Profiles
import Queue
import WaypostCore

/// What is in a queue, in words and as JSON Lines. It changes nothing, and works beside a running daemon.
package struct QueueReport {
    /// The queue could not be read.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        /// Of sysexits.h.
        package let exitCode: Int32
        /// The file is a queue, and damaged.
        package let isDamage: Bool

        init(_ error: OutboxError) {
            guard !Denial.forbidsReading(error.path) else {
                (isDamage, description, exitCode) = (false, Denial.words(for: error.path), Denial.exitStatus)
                return
            }
            isDamage = error.cause == .corrupt
            description = error.description
            exitCode =
                switch error.cause {
                case .cannotOpen: 66  // EX_NOINPUT
                case .readOnly: 77  // EX_NOPERM
                case .corrupt, .foreign, .otherSchema: 65  // EX_DATAERR
                case .locked: 75  // EX_TEMPFAIL
                case .full, .io, .refused: 74  // EX_IOERR
                }
        }

        /// Some rows were passed by; nil = none was.
        init?(missingFrom reader: OutboxReader) {
            guard !reader.hasFailedReads else {
                isDamage = false
                description =
                    "the disk failed to read: locations that it did not read were left out; `dmesg` reports failing cards and disks"
                exitCode = 74  // EX_IOERR
                return
            }
            guard reader.hasPassedDamage else { return nil }
            isDamage = true
            description =
                "the queue is damaged: locations that cannot be read were left out; `waypost queue verify` says where, and the "
                + "daemon brings the others into a new queue when it meets the damage"
            exitCode = 65  // EX_DATAERR
        }
    }

    /// What is left out; nil = nothing.
    package var damage: Failure? { Failure(missingFrom: reader) }

    private let reader: OutboxReader

    package init(path: String) throws(Failure) {
        do throws(OutboxError) { reader = try OutboxReader(path: path) } catch { throw Failure(error) }
    }

    /// How much waits, for whom, since when.
    struct Summary {
        fileprivate let name: String
        fileprivate let rows: Int
        fileprivate let oldest, newest: QueuedLocation?
        fileprivate let depths: [EndpointDepth]

        /// For people.
        var lines: [String] {
            var lines = ["queue \(name): \(rows == 0 ? "nothing on disk" : "\(rows) rows on disk")"]
            if let oldest, let newest {
                lines.append("oldest  \(oldest.date.iso8601)  seq \(oldest.seq)")
                lines.append("newest  \(newest.date.iso8601)  seq \(newest.seq)")
            }
            return lines + depths.map(QueueReport.line)
        }

        /// For programs.
        var json: String {
            var writer = JSONWriter()
            writer.beginObject()
            writer.field("queue", name)
            writer.field("rows", rows)
            writer.field("oldest_seq", oldest?.seq)
            writer.field("oldest_time", oldest?.date.iso8601)
            writer.field("newest_seq", newest?.seq)
            writer.field("newest_time", newest?.date.iso8601)
            writer.key("endpoints")
            writer.beginArray()
            for depth in depths {
                writer.beginObject()
                writer.field("name", depth.endpoint)
                writer.field("state", depth.state.word)
                writer.field("reason", depth.state.reason)
                writer.field("waiting", depth.waiting + depth.inFlight)
                writer.field("in_batches", depth.inFlight)
                writer.field("quarantine_depth", depth.quarantined)
                writer.endObject()
            }
            writer.endArray()
            writer.endObject()
            return String(decoding: writer.bytes, as: UTF8.self)
        }
    }

    func summary() throws(Failure) -> Summary {
        do throws(OutboxError) {
            return Summary(
                name: reader.name, rows: try reader.rowCount(), oldest: try reader.oldest(1).first,
                newest: try reader.newest(1).first, depths: try reader.depths())
        } catch {
            throw Failure(error)
        }
    }

    /// The oldest rows, or the newest, in the order of the queue: one JSON object each.
    package func rows(_ count: Int, newest: Bool) throws(Failure) -> [String] {
        do throws(OutboxError) {
            return try (newest ? reader.newest(count) : reader.oldest(count)).map(Self.line)
        } catch {
            throw Failure(error)
        }
    }

    /// What a check finds wrong, one line each; empty when all is well. Damage that stops the check is thrown.
    ///
    /// - Parameter quick: leaves out what takes most of the time, whether indices agree with their tables.
    package func problems(quick: Bool = false) throws(Failure) -> [String] {
        do throws(OutboxError) { return try reader.verify(quick: quick) } catch { throw Failure(error) }
    }

    fileprivate static func line(_ depth: EndpointDepth) -> String {
        var line = "endpoint \(depth.endpoint): \(depth.waiting + depth.inFlight) waiting on disk"
        if depth.inFlight > 0 { line += ", \(depth.inFlight) of them in a formed batch" }
        if depth.state != .active { line += ", \(depth.state.word)" }
        if let reason = depth.state.reason, !reason.isEmpty { line += " (\(reason))" }
        return line
    }

    private static func line(_ row: QueuedLocation) -> String {
        let location = row.location
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("seq", row.seq)
        writer.field(location.isPlaced ? "time" : "received", row.date.iso8601)
        writer.field("trackable", location.trackable)
        if location.isPlaced {
            writer.field("latitude", scaled: Int64(location.coordinate.latitudeE7), places: 7)
            writer.field("longitude", scaled: Int64(location.coordinate.longitudeE7), places: 7)
        }
        writer.field("moving", location.moving)
        writer.field("event", location.event.rawValue)
        writer.field("reason", location.reason)
        writer.field("geofence_id", location.geofence?.id)
        writer.field("geofence_action", location.geofence?.action.rawValue)
        writer.field("published", location.published)
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
