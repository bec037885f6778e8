import WaypostCore

/// Why a request was refused, in words for people.
public struct ControlError: ControlMessage, Error {
    @Field("code", "`bad-frame`, `unknown-verb`, `bad-request`, `refused`, `busy`, …") public var code = ""
    @Field("message", "What is wrong") public var message = ""
    @Field("hint", "What to do about it") public var hint: String?

    public init() {}

    package init(_ code: String, _ message: String, hint: String? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
    }

    static let badFrame = ControlError(
        "bad-frame", "not a request", hint: #"one JSON object a line, such as {"id":1,"do":"status"}"#)

    package static func unknownVerb(_ verb: String) -> ControlError {
        ControlError(
            "unknown-verb", "unknown verb \"\(verb)\"",
            hint: "this version knows: " + Verb.allCases.map(\.rawValue).joined(separator: ", "))
    }
}

/// One line from a client: `{"id":1,"do":"status"}`.
package struct RequestFrame {
    package let id: Int?
    /// As it was sent: it need not be a `Verb`.
    package let verb: String
    private let json: JSONValue

    package init(_ line: [UInt8]) throws(ControlError) {
        guard let json = JSONReader.read(line), let verb = json["do"]?.string, let id = Int?.read(json["id"] ?? .null)
        else {
            throw .badFrame
        }
        self.id = id
        self.verb = verb
        self.json = json
    }

    package func read<Request: ControlMessage>() throws(ControlError) -> Request {
        guard let request = Request.read(json) else { throw .badFrame }
        return request
    }
}

/// Frames of the control socket: a JSON object and a line feed.
public enum ControlFrame {
    /// Longest line in either direction, the line feed included.
    public static let bytesMax = 65_536
    /// A list ends here: the rest of a frame is for what follows it.
    package static let bytesFilled = 56_000

    /// `{"id":1,"do":"pace","moving":true}`
    package static func line<Request: ControlRequest>(_ request: Request, id: Int = 1) -> [UInt8] {
        frame(id: id) { writer in
            writer.field("do", Request.verb.rawValue)
            request.writeMembers(to: &writer)
        }
    }

    /// `{"id":1,"ok":true,…}`, or the error that `answer` throws.
    package static func reply(
        to id: Int?, _ answer: () throws(ControlError) -> any ControlMessage
    ) -> [UInt8] {
        do throws(ControlError) {
            let reply = try answer()
            let bytes = frame(id: id) { writer in
                writer.field("ok", true)
                reply.writeMembers(to: &writer)
            }
            guard bytes.count < bytesMax else {
                throw ControlError("too-large", "the reply would not fit into a frame of \(bytesMax) bytes")
            }
            return bytes
        } catch {
            // What is no request has no id to rely on.
            return failure(id: error.code == ControlError.badFrame.code ? nil : id, error)
        }
    }

    /// `{"id":1,"error":{"code":"…","message":"…","hint":"…"}}`
    package static func failure(id: Int?, _ error: ControlError) -> [UInt8] {
        func frame(_ error: ControlError) -> [UInt8] {
            self.frame(id: id) { writer in
                _ = error.write("error", to: &writer, FieldFormat())
            }
        }
        let whole = frame(error)
        if whole.count < bytesMax { return whole }
        // The text may quote the input; escaping makes at most six bytes of one.
        let hint = error.hint?.cut(toBytes: 5000)
        return frame(ControlError(error.code, error.message.cut(toBytes: 5000), hint: hint))
    }

    /// - Throws: `ControlError` of the daemon; `bad-reply` where the line is none of its replies.
    package static func read<Reply: ControlMessage>(_ line: [UInt8]) throws(ControlError) -> Reply {
        let json = JSONReader.read(line)
        if let error = json?["error"].flatMap(ControlError.read) { throw error }
        guard json?["ok"]?.bool == true, let reply = json.flatMap(Reply.read) else {
            throw ControlError("bad-reply", "unexpected reply from the daemon")
        }
        return reply
    }

    private static func frame(id: Int?, _ members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.field("id", id)
        members(&writer)
        writer.endObject()
        return writer.bytes
    }
}
