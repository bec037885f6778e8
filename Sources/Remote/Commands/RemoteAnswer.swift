import WaypostCore

/// What a server is told about a command.
package struct RemoteAnswer: Hashable, Sendable {
    package var id: String
    /// Why it was not carried out, in one word; nil = it was.
    package var code: String?
    /// For people.
    package var message: String
    /// What else it says, such as `status`.
    package var result: JSONValue?

    package init(id: String, code: String? = nil, message: String = "", result: JSONValue? = nil) {
        self.id = id
        self.code = code
        self.message = message
        self.result = result
    }

    /// `{"id":"c-81","ok":true}` or `{"id":"c-81","error":{"code":"clock","message":"…"}}`
    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("id")
        writer.value(id)
        if let code {
            writer.key("error")
            writer.beginObject()
            writer.key("code")
            writer.value(code)
            writer.key("message")
            writer.value(message)
            writer.endObject()
        } else {
            writer.key("ok")
            writer.value(true)
            writer.field("result", result)
        }
        writer.endObject()
        return writer.bytes
    }
}
