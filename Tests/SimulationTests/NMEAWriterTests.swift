import Testing
import WaypostCore

@testable import DriveSimulation

@Suite struct NMEAWriterTests {
    private let fix = NoisyFix(
        place: .zero, speed: 10, course: 359.999, hdop: 0.8, satellites: 12, altitude: -0.04, sigma: 2.5)

    private func text(
        _ reception: Reception, time: Int64 = 1_772_495_999_000,
        origin: Coordinate = SimulatedDrive.Settings.defaultOrigin, _ sentences: NMEAWriter.Sentences = .rmc
    ) -> String {
        let bytes = NMEAWriter(sentences: sentences).epoch(
            reception, at: UTCTime(milliseconds: time), on: LocalPlane(origin: origin))
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func writesEverySentenceWithItsChecksum() {
        #expect(
            text(.fix(fix), [.rmc, .gga, .gsa, .gst])
                == "$GNRMC,235959.00,A,5231.20000,N,01324.30000,E,19.438,0.00,020326,,,A*43\r\n"
                + "$GNGGA,235959.00,5231.20000,N,01324.30000,E,1,12,0.80,0.0,M,39.6,M,,*44\r\n"
                + "$GNGSA,A,3,02,07,12,17,22,27,32,06,11,16,21,26,1.44,0.80,1.20*14\r\n"
                + "$GNGST,235959.00,7.5,,,,2.50,2.50,4.25*57\r\n")
    }

    @Test func turnsTheDayAtMidnight() {
        #expect(text(.fix(fix), time: 1_772_495_999_990).contains(",020326,"))
        let next = text(.fix(fix), time: 1_772_496_000_000)
        #expect(next.hasPrefix("$GNRMC,000000.00,A") && next.contains(",030326,"))
    }

    @Test(arguments: [
        (Coordinate(latitudeE7: -1, longitudeE7: -1), "0000.00001,S,00000.00001,W"),
        (Coordinate(latitudeE7: 899_999_999, longitudeE7: 1_799_999_999), "8959.99999,N,17959.99999,E"),
        (Coordinate(latitudeE7: 9_999_999, longitudeE7: 0), "0059.99999,N,00000.00000,E"),
        (Coordinate(latitudeE7: 0, longitudeE7: 10_000_000), "0000.00000,N,00100.00000,E"),
    ])
    func writesAnglesWithoutSixtyMinutes(origin: Coordinate, expected: String) {
        #expect(text(.fix(fix), origin: origin).contains(",\(expected),"))
    }

    @Test func keepsTheTimeOfAVoidEpochWhenTheReceiverKnowsIt() {
        #expect(text(.void(knowsTime: true)).hasPrefix("$GNRMC,235959.00,V,,,,,,,020326,,,N*"))
        #expect(text(.void(knowsTime: false)).hasPrefix("$GNRMC,,V,,,,,,,,,,N*"))
        #expect(text(.silent).isEmpty)
    }
}
