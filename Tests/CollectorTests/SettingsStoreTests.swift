import Testing

@testable import waypost_collector

@Suite("Settings for devices") struct SettingsStoreTests {
    private var store = SettingsStore()

    private func document(_ version: Int) -> [UInt8] {
        Array(#"{"device":"van-7","version":\#(version),"set":{}}"#.utf8)
    }

    @Test mutating func areAnnouncedAndFetchedOnce() {
        #expect(store.announcement(to: "van-7") == [:])
        #expect(store.document(of: "van-7", known: nil).status == 404)
        #expect(store.want(document(17), for: "van-7").status == 204)
        #expect(store.announcement(to: "van-7") == ["Waypost-Settings": "17"])
        #expect(store.announcement(to: "van-8") == [:])
        #expect(store.document(of: "van-7", known: "\"16\"").body == document(17))
        #expect(store.document(of: "van-7", known: "\"17\"").status == 304)
    }

    @Test mutating func areOfThatDeviceAndNewer() {
        let spaces = [UInt8](repeating: 0x20, count: 16_384)
        let rows: [(document: [UInt8], device: String, status: Int)] = [
            (document(17), "van-7", 204), (document(17), "van-7", 409), (document(18), "van-8", 400),
            (Array("{}".utf8), "van-7", 400), (document(18) + spaces, "van-7", 400), (document(18), "van-7", 204),
        ]
        for (index, row) in rows.enumerated() {
            #expect(store.want(row.document, for: row.device).status == row.status, "\(index)")
        }
    }

    @Test mutating func haveAReport() {
        #expect(store.report(of: "van-7").status == 404)
        let report = Array(#"{"device":"van-7","state":"applied"}"#.utf8)
        #expect(store.report(report, from: "van-8").status == 400)
        #expect(store.report(report, from: "van-7").status == 204)
        #expect(store.report(of: "van-7").body == report)
    }
}
