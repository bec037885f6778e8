import Hash
import WaypostCore

/// What a broker delivers where messages are signed: `{"payload": "<base64>", "signature": "sha256=…"}`
struct SignedEnvelope: Hashable {
    /// It is a third longer than what it has in it.
    static let bytesMax = 32 << 10

    var content: [UInt8]
    /// nil = there is none, which is wrong.
    var signature: String?

    /// nil where a message is none.
    init?(_ bytes: [UInt8]) {
        guard let envelope = JSONReader.read(bytes, bytesMax: Self.bytesMax),
            let content = envelope["payload"]?.string.flatMap(Base64.decode)
        else { return nil }
        self.content = content
        signature = envelope["signature"]?.string
    }
}
