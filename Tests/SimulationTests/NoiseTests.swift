import DriveSimulation
import Testing
import WaypostCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

@Suite struct NoiseTests {
    private struct Fix {
        var place: PlanePoint
        var speed: Double
        var course: Double
    }

    /// Decoded here and not with the NMEA target, so that a shared mistake cannot hide.
    private func decoded(_ drive: inout SimulatedDrive) -> [Fix] {
        let plane = LocalPlane(origin: drive.settings.origin)
        func number(_ field: ArraySlice<UInt8>) -> Double { Double(String(decoding: field, as: UTF8.self))! }
        func degrees(_ field: ArraySlice<UInt8>, _ digits: Int, isNegative: Bool) -> Double {
            let degrees = number(field.prefix(digits)) + number(field.dropFirst(digits)) / 60
            return isNegative ? -degrees : degrees
        }
        var fixes: [Fix] = []
        while let epoch = drive.nextEpoch() {
            let fields = epoch.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            guard fields.count > 9, fields[0].elementsEqual("$GNRMC".utf8), fields[2] == [UInt8(ascii: "A")] else {
                continue
            }
            let coordinate = Coordinate(
                latitude: degrees(fields[3], 2, isNegative: fields[4] == [UInt8(ascii: "S")]),
                longitude: degrees(fields[5], 3, isNegative: fields[6] == [UInt8(ascii: "W")]))!
            fixes.append(
                Fix(place: plane.point(coordinate), speed: number(fields[7]) * 1852 / 3600, course: number(fields[8])))
        }
        return fixes
    }

    private func drive(
        _ scenario: String, _ preset: NoisePreset, seed: UInt64, noiseSeed: UInt64? = nil, period: Int = 1000,
        _ sentences: NMEAWriter.Sentences = .rmc
    ) -> SimulatedDrive {
        SimulatedDrive(
            Scenario.named(scenario)!,
            settings: SimulatedDrive.Settings(
                seed: seed, noiseSeed: noiseSeed, preset: preset, period: period, sentences: sentences))
    }

    @Test func givesTheSameBytesForTheSameSeed() {
        var (a, b, c) = (
            drive("reversing", .canyon, seed: 5), drive("reversing", .canyon, seed: 5),
            drive("reversing", .canyon, seed: 6)
        )
        let bytes = a.allBytes()
        #expect(bytes == b.allBytes())
        #expect(bytes != c.allBytes())
    }

    @Test func drivesTheSameWayUnderEveryPresetAndNoiseSeed() {
        let drives = [
            drive("city", .open, seed: 9), drive("city", .canyon, seed: 9),
            drive("city", .street, seed: 9, noiseSeed: 1),
        ]
        #expect(drives.allSatisfy { $0.truth.samples == drives[0].truth.samples })
    }

    /// The deviation of the sum of all parts, and a memory of minutes: what makes parked drift look like movement.
    @Test(arguments: [(NoisePreset.open, 1.71), (.street, 2.71)])
    func wandersWithTheDeviationOfItsPresetAndForgetsSlowly(preset: NoisePreset, sigma: Double) {
        var (squares, products, count) = (0.0, 0.0, 0.0)
        var quiet = preset
        quiet.jumpsPerDay = 0
        for seed in 1...8 as ClosedRange<UInt64> {
            var drive = drive("parked-day", quiet, seed: seed, period: 60_000)
            let fixes = decoded(&drive)
            #expect(fixes.count == 1440)
            for (fix, later) in zip(fixes, fixes.dropFirst(10)) {
                squares += fix.place.east * fix.place.east + fix.place.north * fix.place.north
                products += fix.place.east * later.place.east + fix.place.north * later.place.north
                count += 2
            }
        }
        #expect(abs((squares / count).squareRoot() / sigma - 1) < 0.2)
        // After ten minutes only the slow part is remembered, by a factor exp(-1/3).
        let remembered = preset.slowSigma * preset.slowSigma * 0.717
        #expect(abs(products / count - remembered) < 0.35 * remembered)
    }

    @Test func believesItStandsStillWithinTheDopplerNoise() {
        var drive = drive("parked-day", .open, seed: 2, period: 10_000)
        let fixes = decoded(&drive)
        let meanSquare = fixes.reduce(0) { $0 + $1.speed * $1.speed } / Double(fixes.count)
        #expect(abs((meanSquare / 2).squareRoot() / (0.05 * 1.09.squareRoot()) - 1) < 0.1)
        let north = fixes.count { $0.course < 90 || $0.course > 270 }
        #expect(abs(Double(north) / Double(fixes.count) - 0.5) < 0.05)
    }

    @Test func followsTheTrueVelocityWithALagOfASecond() {
        var drive = drive("city", .open, seed: 3)
        let fixes = decoded(&drive)
        #expect(fixes.count == drive.truth.samples.count)
        var followed = PlanePoint.zero
        var (squares, unlagged, count) = (0.0, 0.0, 0.0)
        for (sample, fix) in zip(drive.truth.samples, fixes) {
            followed = followed + (sample.velocity - followed) * (1 - exp(-1))
            guard followed.length > 5 else { continue }
            squares += (fix.speed - followed.length) * (fix.speed - followed.length)
            unlagged += (fix.speed - sample.speed) * (fix.speed - sample.speed)
            count += 1
        }
        #expect(abs((squares / count).squareRoot() / (0.05 * 1.09.squareRoot()) - 1) < 0.15)
        #expect((unlagged / count).squareRoot() > 0.2)
    }

    @Test func jumpsInTheCanyonButNotInTheOpen() {
        func worst(_ preset: NoisePreset) -> Double {
            var drive = drive("parked-day", preset, seed: 4, period: 10_000)
            return decoded(&drive).map(\.place.length).max() ?? 0
        }
        #expect(worst(.open) < 10)
        #expect((30...150).contains(worst(.canyon)))
    }

    @Test func saysInTheHDOPThatTheFirstFixAfterAGarageIsPoor() throws {
        var drive = drive("garage", .open, seed: 8, .standard)
        var epochs: [String] = []
        while let epoch = drive.nextEpoch() { epochs.append(String(decoding: epoch, as: UTF8.self)) }
        let void = try #require(epochs.lastIndex { $0.contains("GNRMC") && $0.contains(",V,") })
        let first = epochs[void + 1]
        let gga = try #require(first.split(whereSeparator: \.isNewline).first { $0.hasPrefix("$GNGGA") })
        let hdop = try #require(Double(gga.split(separator: ",", omittingEmptySubsequences: false)[8]))
        #expect(hdop > 4)
        // Back within seconds of the sky, not at once.
        let back = try #require(drive.truth.samples.lastIndex { $0.sky == .garage })
        #expect((6...26).contains(void - back))
    }

    @Test func isSilentWithoutPowerAndSearchesWithoutTimeAfterwards() throws {
        var drive = drive("power-up", .street, seed: 1)
        var epochs: [[UInt8]] = []
        while let epoch = drive.nextEpoch() { epochs.append(epoch) }
        #expect(zip(drive.truth.samples, epochs).allSatisfy { $1.isEmpty == ($0.sky == .off) })
        let first = try #require(epochs.first { !$0.isEmpty })
        #expect(String(decoding: first, as: UTF8.self).hasPrefix("$GNRMC,,V,,,,,,,,,,N*"))
    }
}
