import Testing
import WaypostCore

@testable import Inspect

@Suite struct EpochTableTests {
    private static func fix(_ ms: Int64, speed: Double? = nil) -> Epoch {
        .fix(
            Fix(
                time: UTCTime(milliseconds: ms), timeOfDay: 0, at: .zero,
                coordinate: Coordinate(latitudeE7: 470_000_000 + Int32(ms / 1000), longitudeE7: 80_000_000),
                speed: speed,
                mode: .threeD, quality: .gps))
    }

    @Test func keepsEpochsInTheOrderOfTime() {
        var table = EpochTable()
        var rows: [Int?] = [table.append(Self.fix(1000, speed: 3.456))]
        for ms: Int64 in [1000, 500, 2000] { rows.append(table.append(Self.fix(ms))) }
        #expect(rows == [0, nil, nil, 1])
        #expect(table.times == [1000, 2000] && table.speeds == [346, -1])
        // Of the epochs that are left out one repeats a time.
        #expect(table.leftOut == 1)
    }

    @Test func aVoidEpochIsWhereTheLastFixWas() {
        var table = EpochTable()
        let void = Epoch.void(VoidEpoch(time: UTCTime(milliseconds: 3000), timeOfDay: 0, at: .zero, reason: .void))
        #expect(table.append(void) == nil)
        _ = table.append(Self.fix(1000))
        #expect(table.append(void) == 1)
        #expect(table.coordinate(1) == table.coordinate(0))
        #expect(table.verdict(1) == EpochTable.Verdict(kind: .void))
    }

    @Test func aVoidEpochHasWhatTheReceiverSaw() {
        var table = EpochTable()
        _ = table.append(Self.fix(1000))
        func void(_ ms: Int64, _ inView: Int?) -> Epoch {
            .void(
                VoidEpoch(
                    time: UTCTime(milliseconds: ms), timeOfDay: 0, at: .zero, reason: .void, satellitesUsed: 0,
                    satellitesInView: inView))
        }
        _ = table.append(void(2000, nil))
        #expect(table.satellites[1] == -1)
        #expect(table.satellitesMeanwhile == "not reported")
        _ = table.append(void(3000, 4))
        #expect(table.satellitesMeanwhile == "4")
        _ = table.append(void(4000, 2))
        #expect(table.satellites[2...] == [4, 2])
        #expect(table.satellitesMeanwhile == "2 to 4")
    }

    @Test func aClockSetBackTakesTheRowsThatItDatedWrongly() {
        var table = EpochTable()
        for ms in [1000, 2000, 3000] as [Int64] { _ = table.append(Self.fix(ms)) }
        table.rewind(to: 2000)
        #expect(table.append(Self.fix(2500)) == 1)
        #expect(table.times == [1000, 2500])
        #expect(table.leftOut == 2)
    }

    @Test func theLongestOfRecordingsYearsApartStays() {
        var table = EpochTable()
        let year: Int64 = 366 * 86_400_000
        for ms in [1000, 2 * year, 2 * year + 1000, 2 * year + 2000, 4 * year] { _ = table.append(Self.fix(ms)) }
        table.keepLongestRecording()
        #expect(table.times == [2 * year, 2 * year + 1000, 2 * year + 2000])
        #expect(table.leftOut == 2)
        #expect(table.longestSilence?.length == 1000)
    }

    /// A fix that was refused may lie near the place that is hidden, wherever it says it is.
    @Test func aRefusedFixIsHiddenWithThatBesideIt() {
        var table = EpochTable()
        for ms in [1000, 2000, 3000, 4000, 5000, 6000] as [Int64] { _ = table.append(Self.fix(ms)) }
        for row in [0, 2, 4] { table.judge(row, EpochTable.Verdict(kind: .refused, reason: "accuracy")) }
        let hidden = table.coordinate(5)
        table.hide { $0 == hidden }
        #expect(table.times == [2000, 3000, 4000])
    }

    @Test func findsRowsByTime() {
        var table = EpochTable()
        for ms in [1000, 2000, 4000] as [Int64] { _ = table.append(Self.fix(ms)) }
        #expect(table.row(at: 2000) == 1)
        #expect(table.row(at: 3000) == nil)
        #expect(table.rows(from: 1500, through: 4000) == 1..<3)
        #expect(table.rows(from: 2500, through: .max) == 2..<3)
        #expect(table.rows(from: 5000, through: 9000).isEmpty)
    }

    @Test func hidesRowsWithAllTheirColumns() {
        var table = EpochTable()
        for ms in [1000, 2000, 3000] as [Int64] { _ = table.append(Self.fix(ms)) }
        table.judge(2, EpochTable.Verdict(kind: .kept, reason: "interval"))
        let hidden = table.coordinate(1)
        table.hide { $0 == hidden }
        #expect(table.times == [1000, 3000])
        #expect(table.verdict(1).kind == .kept)
        #expect(table.latitudes.count == 2 && table.altitudes.count == 2 && table.satellites.count == 2)
    }
}

@Suite struct ColumnPackingTests {
    @Test(
        arguments: [[0], [5, 4, 1000], [-1, 0, 1], [1_800_000_000_000, 1_800_000_000_999], [.min, .max]] as [[Int64]])
    func readsBackAsItWas(_ column: [Int64]) {
        var packing = ColumnPacking()
        #expect(packing.append(column) == packing.bytes.count)
        #expect(unpacked(packing.bytes) == column)
    }

    @Test func smallDifferencesTakeAByte() {
        var packing = ColumnPacking()
        #expect(packing.append([1_800_000_000_000, 1_800_000_000_063] as [Int64]) == 7)
    }
}

/// The reverse of `ColumnPacking`.
func unpacked(_ bytes: some Sequence<UInt8>) -> [Int64] {
    var (values, last, value, shift): ([Int64], Int64, UInt64, UInt64) = ([], 0, 0, 0)
    for byte in bytes {
        value |= UInt64(byte & 0x7F) << shift
        shift += 7
        guard byte & 0x80 == 0 else { continue }
        last = last &+ (Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
        values.append(last)
        (value, shift) = (0, 0)
    }
    return values
}
