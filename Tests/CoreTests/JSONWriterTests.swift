import TestSupport
import Testing
import WaypostCore

@Suite struct JSONWriterTests {
    private func text(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        write(&writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    static let scaled: [(Int64, Int, String)] = [
        (2710 as Int64, 1, "271.0"), (1300, 2, "13.0"), (1230, 2, "12.3"), (0, 7, "0.0"), (-1, 7, "-0.0000001"),
        (525_200_066, 7, "52.5200066"), (134_049_540, 7, "13.404954"), (-900_000_000, 7, "-90.0"), (5, 0, "5"),
        (-5, 1, "-0.5"), (1001, 3, "1.001"), (.max, 0, "9223372036854775807"), (.min, 1, "-922337203685477580.8"),
        (.min, 18, "-9.223372036854775808"),
    ]

    @Test(arguments: scaled)
    func rendersScaledIntegers(scaled: Int64, places: Int, expected: String) {
        #expect(text { $0.value(scaled: scaled, places: places) } == expected)
    }

    static let doubles: [(Double, Int, String)] = [
        (-0.000_000_04, 7, "{\"x\":0.0}"), (0.05, 1, "{\"x\":0.1}"), (-0.25, 1, "{\"x\":-0.3}"),
        (13, 2, "{\"x\":13.0}"),
        (.nan, 1, "{}"), (.infinity, 1, "{}"), (-.infinity, 1, "{}"), (1e300, 1, "{}"), (2.5, 0, "{\"x\":3}"),
    ]

    @Test(arguments: doubles)
    func roundsDoublesHalfAwayFromZero(value: Double, places: Int, expected: String) {
        let written = text {
            $0.beginObject()
            $0.field("x", value, places: places)
            $0.endObject()
        }
        #expect(written == expected)
    }

    @Test func writesShortestDoublesAndNoNumbersThatJSONLacks() {
        let value = JSONValue.object([
            .init("a", .double(0.1)), .init("b", .double(-0.0)), .init("c", .double(.nan)), .init("d", .double(271)),
            .init("e", .array([.double(.infinity), .double(1e-7)])), .init("f", .null),
        ])
        #expect(String(decoding: value.bytes, as: UTF8.self) == #"{"a":0.1,"b":0.0,"d":271.0,"e":[1e-07],"f":null}"#)
    }

    @Test func keepsOrderAndNesting() {
        let written = text {
            $0.beginObject()
            $0.field("z", Int64(-1))
            $0.key("list")
            $0.beginArray()
            $0.value(true)
            $0.beginObject()
            $0.endObject()
            $0.value("s")
            $0.endArray()
            $0.field("gone", nil as String?)
            $0.field("word", word: "w")
            $0.field("tree", .array([.int(1), .decimal(scaled: 25, places: 1), .bool(false)]))
            $0.endObject()
        }
        #expect(written == #"{"z":-1,"list":[true,{},"s"],"word":"w","tree":[1,2.5,false]}"#)
    }

    static let escapes: [(String, String)] = [
        ("plain", #""plain""#), ("a\"b\\c", #""a\"b\\c""#), ("\u{08}\t\n\u{0C}\r", #""\b\t\n\f\r""#),
        ("\u{0}\u{1F}\u{7F}", "\"\\u0000\\u001f\u{7F}\""), ("/é😀", "\"/é😀\""), ("", #""""#),
    ]

    @Test(arguments: escapes)
    func escapesWhatMustBeEscaped(string: String, expected: String) {
        #expect(text { $0.value(string) } == expected)
        #expect(text { $0.key(string) } == expected + ":")
    }

    @Test func startsAgainWithTheSameBuffer() {
        var writer = JSONWriter(reserving: 64)
        writer.value(Int64(1))
        writer.newline()
        writer.value(Int64(2))
        #expect(writer.bytes == Array("1\n2".utf8))
        writer.removeAll()
        writer.value(Int64(3))
        #expect(writer.bytes == Array("3".utf8))
    }

    @Test func readsBackEveryScaledInteger() {
        let seed = testSeed(1)
        var generator = SeededGenerator(seed: seed)
        var wrong: [String] = []
        for _ in 0..<2000 {
            let scaled = Int64.random(in: -1_800_000_000...1_800_000_000, using: &generator)
            let places = Int.random(in: 1...7, using: &generator)
            let written = text { $0.value(scaled: scaled, places: places) }
            if Scaled.integer(Double(written), places: places) != scaled { wrong.append(written) }
        }
        #expect(wrong == [], "seed \(seed)")
    }
}
