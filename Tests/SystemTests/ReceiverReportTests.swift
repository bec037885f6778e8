import Foundation
import TestSupport
import Testing

/// What a receiver reports besides its fixes, as `status` shows it.
@Suite(.waiting) struct ReceiverReportTests {
    private static func sentence(_ body: String) -> String {
        "$\(body)*\(String(format: "%02X", body.utf8.reduce(0, ^)))\r\n"
    }

    @Test(.bug(id: 13)) func statusShowsTheSkyAndTheAntenna() throws {
        let rig = try Rig()
        let server = try LocalServer()
        try rig.configure(source: "kind = \"tcp\"\nhost = \"127.0.0.1\"\nport = \(server.port)")
        let daemon = try rig.startDaemon()
        try server.accept()
        let cycle = [
            "GNRMC,070048.00,V,,,,,,,020326,,,N", "GNGGA,070048.00,,,,,0,02,9.9,,M,,M,,",
            "GPGSV,1,1,03,04,60,120,45,05,10,200,28,07,33,050,", "GLGSV,1,1,01,66,40,100,35",
            "GNTXT,01,01,02,ANTSTATUS=OPEN",
        ].map(Self.sentence).joined()
        server.send(Array((cycle + cycle + cycle.replacing("070048", with: "070049")).utf8))
        // The third cycle ends the epoch of the first two.
        let report = try rig.waitFor("source", "satellites_used") { $0 as? Int == 2 }.report
        let source = try #require(report["source"] as? [String: Any])
        #expect(source["satellites_strong"] as? Int == 2)
        #expect(source["cn0_best"] as? Int == 45 && source["cn0_median"] as? Int == 35)
        #expect(source["antenna"] as? String == "open")
        #expect(source["satellites_in_view"] as? Int == 4, "\(source)")
        #expect(daemon.isRunning)
    }
}
