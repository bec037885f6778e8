import Protocols
import Testing

@testable import Hash
@testable import Network

@Suite struct SignatureTests {
    private static let webhookSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

    private func signed(
        _ signer: RequestSigner, _ body: String, id: String = "id", time: Int64 = 0, url: String = "https://f.example/",
        headers: [UplinkRequest.Header] = []
    ) -> [String: String] {
        var request = UplinkRequest(url: url, headers: headers, body: Array(body.utf8), gzip: true)
        signer.sign(&request, id: id, time: time)
        #expect(!request.gzip)
        return Dictionary(request.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
    }

    @Test func standardWebhooks() throws {
        let key = try #require(StandardWebhooks.key(Self.webhookSecret))
        let headers = signed(.standardWebhooks(keys: [key]), #"{"a":1}"#, id: "msg_1", time: 1_700_000_000)
        // Equal to PyPI standardwebhooks 1.1.0.
        #expect(
            headers == [
                "webhook-id": "msg_1", "webhook-timestamp": "1700000000",
                "webhook-signature": "v1,WUgAXU8H0NQ1/7M+TtMwKma2b74a3/TCgekiM3YUdN8=",
            ])
    }

    @Test func standardWebhooksOverTheNativeBody() throws {
        let body =
            #"{"device":"van-7","outbox":"7f3a91c2","boot_id":"5d0f1c6ab2e84f0e9d0a7b3c4e5f6071","trackable":"van-7","#
            + #""batch_id":"7f3a91c2-main-1041-1041","sent_at":"2023-11-14T22:13:40.500Z","locations":[{"location":"#
            + #"{"lat":52.5200066,"lon":13.404954},"timeStamp":1700000000,"accuracy":4.5,"speed":12.3,"bearing":271.0,"#
            + #""altitude":34.1,"time_ms":1700000000123,"seq":1041,"altitude_hae":73.7,"satellites":9,"fix_mode":"3d","#
            + #""quality":"dgps","moving":true,"reason":"displacement","odometer":15230.4,"battery":87,"charging":true,"#
            + #""external_power":true}]}"#
        let key = try #require(StandardWebhooks.key(Self.webhookSecret))
        let headers = signed(
            .standardWebhooks(keys: [key]), body, id: "7f3a91c2-main-1041-1041", time: 1_700_000_021)
        #expect(headers["webhook-signature"] == "v1,/PKY9z8AN/M0PUpHQf1LdP2IgqvhPs7jA8MGAh8NN0I=")
    }

    @Test func severalKeysGiveAListOfSignatures() throws {
        let old = try #require(StandardWebhooks.key(Self.webhookSecret))
        let new = [UInt8](repeating: 7, count: 64)
        let both = signed(.standardWebhooks(keys: [new, old]), "x")["webhook-signature"] ?? ""
        let alone = [new, old].map { signed(.standardWebhooks(keys: [$0]), "x")["webhook-signature"] ?? "" }
        #expect(both == alone.joined(separator: " "))
    }

    @Test(
        arguments: [
            "whsec_", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY", "whsec_!!!!",
            // 23 and 65 bytes.
            "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "whsec_" + String(repeating: "AAAA", count: 21) + "AAA=",
            // A bit that no byte holds.
            "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB==",
        ])
    func refusesWhatIsNoWebhookSecret(secret: String) {
        #expect(StandardWebhooks.key(secret) == nil)
    }

    @Test func gitHub() {
        let headers = signed(.gitHub(secret: Array("It's a Secret to Everybody".utf8)), "Hello, World!")
        #expect(
            headers == [
                "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
            ])
    }

    private static let aws = SigV4(
        region: "eu-west-1", service: "geo", accessKey: "AKIDEXAMPLE",
        secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")

    @Test func signatureVersion4() {
        let body =
            #"{"Updates":[{"DeviceId":"van-7","SampleTime":"2023-11-14T22:13:20.123Z","Position":[13.404954,52.5200066],"#
            + #""Accuracy":{"Horizontal":4.5},"PositionProperties":{"speed":"12.3","bearing":"271.0","battery":"87"}}]}"#
        #expect(
            String(hexOf: SHA256.hash(Array(body.utf8)))
                == "93a81ab5c5665afd4e59b8c2036d4ae0f16a24ebc4d7dbc5e438e89294c5c681")
        let headers = signed(
            .aws(Self.aws), body, time: 1_700_000_000,
            url: "https://tracking.geo.eu-west-1.amazonaws.com/tracking/v0/trackers/fleet/positions",
            headers: [.init("Content-Type", "application/json")])
        // Equal to botocore 1.43.11.
        #expect(headers["x-amz-date"] == "20231114T221320Z")
        #expect(
            headers["authorization"]
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-west-1/geo/aws4_request, "
                + "SignedHeaders=content-type;host;x-amz-date, "
                + "Signature=422b3b5a8808ae26968dcf565e96eb793e34fee9ee551e06fd1348e60f7f73df")
    }

    @Test func temporaryCredentialsSignTheirToken() {
        var aws = Self.aws
        aws.sessionToken = "tok"
        let headers = signed(.aws(aws), "", headers: [.init("Content-Type", "a")])
        #expect(headers["x-amz-security-token"] == "tok")
        #expect(headers["authorization"]?.contains("=content-type;host;x-amz-date;x-amz-security-token,") == true)
    }

    /// `get-vanilla-query-order-key-case` and its kin of AWS's test suite come to the same canonical request.
    @Test func equivalentURLsGiveOneSignature() {
        func signature(_ url: String) -> String { signed(.aws(Self.aws), "", url: url)["authorization"] ?? "" }
        let one = signature("https://f.example/a%20b/c?Param1=v%201&Param2=x")
        #expect(signature("https://f.example:443/./a%20b//d/../c?Param2=x&Param1=v%201") == one)
        #expect(signature("https://f.example/a%20b/c?Param1=v%201&Param2=y") != one)
        #expect(signature("https://f.example:8443/a%20b/c?Param1=v%201&Param2=x") != one)
    }

    @Test(arguments: [
        (0, "19700101T000000Z"), (951_782_399, "20000228T235959Z"), (Int64.max, "99991231T235959Z"),
        (Int64.min, "00000101T000000Z"),
    ])
    func stampsAnyTime(time: Int64, stamp: String) { #expect(SigV4.basicStamp(time) == stamp) }

    @Test func recordIDIsAUUIDOfTheQueueAndTheNumber() {
        let queue: [UInt8] = [
            0x7f, 0x3a, 0x91, 0xc2, 0x5b, 0x0e, 0x4d, 0x19, 0x8c, 0x27, 0x61, 0xe4, 0xa0, 0xd3, 0xf5, 0x92,
        ]
        #expect(RecordID.make(outbox: queue, seq: 1041) == "691fdcc0-2836-8fc1-bef1-547eaf2c36f0")
        #expect(RecordID.make(outbox: queue, seq: .max) != RecordID.make(outbox: queue, seq: .min))
    }

    @Test func base64ThereAndBack() {
        for count in 0..<70 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 91 &+ 7) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
        for text in ["A", "A===", "AA=A", "====", "AAA", "AA A", "AB==", "AAé="] { #expect(Base64.decode(text) == nil) }
    }
}
