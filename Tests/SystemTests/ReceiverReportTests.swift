import Foundation
import TestSupport
import Testing

/// What a receiver reports besides its fixes, as `status` shows it.
@Suite(.waiting) struct ReceiverReportTests {
    private static func sentence(_ body: String) -> String {
        let sum: UInt8 = body.utf8.reduce(0, ^)
        return "$\(body)*\(String(format: "%02X", sum))\r\n"
    }

    @Test(.bug(id: 13)) func statusShowsTheSkyAndTheAntenna() throws {
        let rig = try Rig()
        let server = try LocalServer()
        try rig.configure(source: "kind = \"tcp\"\nhost = \"127.0.0.1\"\nport = \(server.port)")
        let daemon = try rig.startDaemon()
        try server.accept()
        let bodies: [String] = [
            "GNRMC,070048.00,V,,,,,,,020326,,,N", "GNGGA,070048.00,,,,,0,02,9.9,,M,,M,,",
            "GPGSV,1,1,03,04,60,120,45,05,10,200,28,07,33,050,", "GLGSV,1,1,01,66,40,100,35",
            "GNTXT,01,01,02,ANTSTATUS=OPEN",
        ]
        let cycle: String = bodies.map(Self.sentence).joined()
        for text in [cycle, cycle, cycle.replacing("070048", with: "070049")] { server.send(Array(text.utf8)) }
        // The third cycle ends the epoch of the first two.
        let report = try rig.waitFor("source", "satellites_used") { $0 as? Int == 2 }
        let source = try #require(report.object("source"))
        let numbers = ["satellites_strong", "cn0_best", "cn0_median", "satellites_in_view"].map(source.int)
        #expect(numbers == [2, 45, 35, 4] && source.string("antenna") == "open", "\(source)")
        #expect(daemon.isRunning)
    }
}
