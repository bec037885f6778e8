import Delivery
import FoundationEssentials
import JSON
import Positioning

/// One request over the control socket: `{"id":1,"do":"status"}` and a line feed.
package struct ControlRequest: Decodable {
    package var id: Int?
    package var `do`: String
    /// `pace`: true = moving, false = stationary, absent = auto.
    /// `movement`: whether the source tells movement.
    package var moving: Bool?
    /// `movement`: who tells it, for people.
    package var source: String?
    /// `odometer`: the reading from now on.
    package var metres: Double?
    /// `engine`: the constant location engine from now on.
    package var set: ControlResolution?
    /// `engine`: true = no constant location engine any more. `boost`: true = none any more.
    package var clear: Bool?
    /// `power`: whether external power is connected; absent = not told.
    package var external: Bool?
    /// `power`: 0…100; absent = not told.
    package var percent: Int?
    /// `power`: whether the battery is being charged; absent = unknown.
    package var charging: Bool?
    /// `boost`: how long from now.
    package var seconds: Double?
    /// `subscriber`: who comes, or asks for another resolution.
    package var add: String?
    /// `subscriber`: who leaves.
    package var remove: String?
    /// `subscriber`: of which trackable; may be absent where there is one.
    package var trackable: String?
    /// `subscriber`: what it asks for; absent = nothing. `boost`: what is published and asked of the receiver meanwhile.
    package var resolution: ControlResolution?
    /// `endpoint`: `list`, `bind`, `resume` or `drop`. `quarantine`: `retry` or `drop`.
    package var action: String?
    /// `endpoint`, `quarantine`: which endpoint; absent = all of them.
    package var endpoint: String?
    /// `endpoint` `list`: only those behind this one in the order of the configuration.
    package var after: String?
    /// `endpoint` `bind`: also where rows of another device or asset wait.
    package var force: Bool?
    /// `quarantine`: sequence numbers of rows.
    package var ids: [Int64]?
    /// `quarantine`: every row, of the endpoint where one is named.
    package var all: Bool?
    /// `flush`: answer when the rows are on disk. Absent or false: when the uploads have been tried, too.
    package var commit: Bool?
    /// `flush`: record a panic event first.
    package var panic: Bool?
}

/// A resolution as it stands in a request.
package struct ControlResolution: Decodable {
    package var priority: String
    /// Milliseconds.
    package var intervalMs: Int64
    /// Metres.
    package var displacement: Double

    enum CodingKeys: String, CodingKey {
        case priority, displacement
        case intervalMs = "interval_ms"
    }
}

/// Why a request was refused, in words for people.
package struct ControlError: Error, Hashable {
    /// `bad-frame`, `unknown-verb`, `refused`, …
    var code: String
    var message: String
    /// What to do about it; nil when the message says it all.
    var hint: String?

    package init(_ code: String, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }
}

/// Frames of the control socket.
package enum ControlFrame {
    /// Longest line in either direction, the line feed included.
    package static let bytesMax = 65_536
    /// A list that has come so far ends: what is left of a frame is for what comes after it.
    package static let bytesFilled = 56_000

    package static func decode(_ line: [UInt8]) throws(ControlError) -> ControlRequest {
        do {
            return try JSONDecoder().decode(ControlRequest.self, from: Data(line))
        } catch {
            throw ControlError(
                "bad-frame", "not a request", hint: #"one JSON object a line, such as {"id":1,"do":"status"}"#)
        }
    }
}

extension ControlFrame {
    /// `{"id":1,"ok":true,…}`; `members` writes the rest.
    package static func success(
        id: Int?, _ members: (inout JSONWriter) throws(ControlError) -> Void
    ) throws(ControlError) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("id", id)
        writer.field("ok", true)
        try members(&writer)
        writer.endObject()
        guard writer.bytes.count < bytesMax else {
            throw ControlError("too-large", "the reply would not fit into a frame of \(bytesMax) bytes")
        }
        return writer.bytes
    }

    /// What `members` write, or the error that they throw.
    package static func reply(
        to id: Int?, _ members: (inout JSONWriter) throws(ControlError) -> Void
    ) -> [UInt8] {
        do throws(ControlError) { return try success(id: id, members) } catch { return failure(id: id, error) }
    }

    /// `{"id":1,"error":{"code":"…","message":"…","hint":"…"}}`
    package static func failure(id: Int?, _ error: ControlError) -> [UInt8] {
        let frame = failure(id: id, error, textMax: .max)
        // What is wrong may have been quoted; a byte takes six at most.
        return frame.count < bytesMax ? frame : failure(id: id, error, textMax: 5000)
    }

    private static func failure(id: Int?, _ error: ControlError, textMax: Int) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("id", id)
        writer.key("error")
        writer.beginObject()
        writer.field("code", error.code)
        writer.field("message", error.message.cut(toBytes: textMax))
        writer.field("hint", error.hint?.cut(toBytes: textMax))
        writer.endObject()
        writer.endObject()
        return writer.bytes
    }
}
