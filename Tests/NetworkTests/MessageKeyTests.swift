import Hash
import Network
import Testing

@Suite("Signed messages of a server") struct MessageKeyTests {
    private static let message = Array(#"{"version":17}"#.utf8)
    private static let other = Array(#"{"version":18}"#.utf8)

    /// `openssl dgst -sha256 -hmac key`
    @Test func aSharedSecret() {
        let key = MessageKey.secret(Array("key".utf8))
        let signature = "sha256=a2d1beaf79a5461bbd966a65e565397efd98f6a977e13bcb6921106303582dd6"
        #expect(key.verifies(Self.message, signature: signature))
        #expect(key.verifies(Self.message, signature: "sha256=" + signature.dropFirst(7).uppercased()))
        #expect(!key.verifies(Self.other, signature: signature))
        #expect(!MessageKey.secret(Array("yek".utf8)).verifies(Self.message, signature: signature))
    }

    /// `openssl pkeyutl -sign -rawin` with a key of `openssl genpkey -algorithm ed25519`
    @Test func aPublicKey() throws {
        let bytes = try #require(Base64.decode("pIemyEBuQov4MzahXWFCgmQam0I4DpyC7Pisrr9vPAk="))
        let key = MessageKey.publicKey(bytes)
        let signature =
            "ed25519=4KmZ7dhUj6XsOFM2DHhj6B4rnGzqPoglbLxsOPH4Cd+2yS/48q/7XXldxiVovRO4gCBeNywg77HIzCRTJxsJBw=="
        #expect(key.verifies(Self.message, signature: signature))
        #expect(!key.verifies(Self.other, signature: signature))
        #expect(!MessageKey.publicKey(bytes.reversed()).verifies(Self.message, signature: signature))
        #expect(!MessageKey.publicKey([]).verifies(Self.message, signature: signature))
    }

    @Test(arguments: [
        "", "sha256=", "ed25519=", "a2d1beaf", "sha256=zz", "md5=00", "ed25519=AAAA", "sha256=é",
        "sha256=a2d1beaf79a5461bbd966a65e565397efd98f6a977e13bcb6921106303582d",
    ])
    func anythingElseIsNone(_ signature: String) {
        #expect(!MessageKey.secret(Array("key".utf8)).verifies(Self.message, signature: signature))
        #expect(!MessageKey.publicKey([UInt8](repeating: 1, count: 32)).verifies(Self.message, signature: signature))
    }
}
