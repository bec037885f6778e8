import TestSupport
import Testing
import WaypostCore

@Suite struct JSONReaderTests {
    private func read(_ text: String) -> JSONValue? { JSONReader.read(Array(text.utf8)) }

    @Test func readsWhatCWritesForNoNumberWhereAsked() {
        for word in ["nan", "-nan", "NaN", "inf", "-inf", "Infinity", "-Infinity"] {
            let text = Array("{\"a\":\(word),\"b\":[\(word)]}".utf8)
            #expect(JSONReader.read(text) == nil)
            #expect(
                JSONReader.read(text, readsNonFinite: true)
                    == .object([.init("a", .null), .init("b", .array([.null]))]))
        }
        for word in ["na", "nano", "1nan", "--nan", "-", "infi"] {
            #expect(JSONReader.read(Array("[\(word)]".utf8), readsNonFinite: true) == nil, "\(word)")
        }
    }

    static let values: [(String, String)] = [
        (" {\"a\" : [1, -2.5, true,null] }\r\n", #"{"a":[1,-2.5,true,null]}"#),
        (#""aA\n\u00e9\ud83d\ude00""#, "\"aA\\né😀\""),
        ("0", "0"), ("-0", "0"), ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9.223372036854776e+18"), ("1E2", "100.0"), ("[]", "[]"), ("{}", "{}"),
    ]

    @Test(arguments: values)
    func readsValues(text: String, written: String) {
        #expect(read(text).map { String(decoding: $0.bytes, as: UTF8.self) } == written)
    }

    @Test(arguments: [
        "", " ", "{", "[1", #"{"a"}"#, #"{"a":}"#, "[1,]", #"{"a":1,}"#, "01", "1.", ".5", "+1", "-", "1e", "tru",
        "nul",
        "\"", #""\x""#, #""\u12""#, #""\ud800""#, #""\udc00""#, #""\ud800\u0041""#, "\"\n\"", "1 2", "{} {}", "NaN",
        "Infinity", "'a'", "{a:1}", "//\n1", "\u{FEFF}1", "[1]]",
    ])
    func refusesWhatIsNoJSON(text: String) {
        #expect(read(text) == nil)
    }

    @Test func refusesBytesThatAreNoText() {
        #expect(JSONReader.read([0x22, 0xFF, 0x22]) == nil)
        #expect(JSONReader.read([0x22, 0xC0, 0x80, 0x22]) == nil)
    }

    @Test func leavesOutWhatIsNotNeeded() {
        func kept(_ text: String) -> String? {
            JSONReader.read(Array(text.utf8), omitting: "s").map { String(decoding: $0.bytes, as: UTF8.self) }
        }
        #expect(kept(#"{"s":[{"a":"]}\"["},[]],"b":1}"#) == #"{"s":null,"b":1}"#)
        #expect(kept(#"{"s":7,"b":{"s":{}}}"#) == #"{"s":7,"b":{"s":null}}"#)
        for text in [#"{"s":["#, #"{"s":["]"#, #"{"s":["a\"#, #"{"s":{}"#] { #expect(kept(text) == nil) }
    }

    @Test func hasBounds() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(read(nested(32)) != nil)
        #expect(read(nested(33)) == nil)
        #expect(read(nested(30_000)) == nil)
        #expect(read(#"{"a":"# + String(repeating: #"{"a":"#, count: 5000)) == nil)
        #expect(read("\"" + String(repeating: "a", count: 65_534) + "\"") != nil)
        #expect(read("\"" + String(repeating: "a", count: 65_535) + "\"") == nil)
        #expect(read("1e999999999") != nil)
    }

    /// The items and the rest are those of the whole text.
    @Test func givesItemsOneByOne() throws {
        let texts: [(text: String, path: [String], rest: String?)] = [
            (#"{"a":1,"l":[{"x":[1]},2,[]],"b":{"l":[3]}}"#, ["l"], #"{"a":1,"l":[],"b":{"l":[3]}}"#),
            (#" [ 1 , "x" ] "#, [], "[]"), (#"[[0],{"l":[1,2]}]"#, ["1", "l"], #"[[0],{"l":[]}]"#),
            (#"{"l":{"m":[7]}}"#, ["l", "m"], #"{"l":{"m":[]}}"#), (#"{"l":7}"#, ["l"], #"{"l":7}"#),
            ("[]", ["l"], "[]"),
            (#"{"l":[]}"#, ["l"], #"{"l":[]}"#), (#"{"l":[1,]}"#, ["l"], nil), (#"{"l":[1]"#, ["l"], nil),
            ("[1]]", [], nil),
        ]
        for (text, path, rest) in texts {
            var items: [JSONValue] = []
            let found = try? JSONReader.parse(Array(text.utf8), itemsAt: path, valuesMax: 9, bytesMax: 100) { item in
                items.append(item)
                return true
            }
            #expect(found.map { String(decoding: $0.bytes, as: UTF8.self) } == rest, "\(text)")
            if found != nil { #expect(items == read(text)?.value(at: path)?.items ?? [], "\(text)") }
        }
        let nested = String(repeating: "[", count: 33) + String(repeating: "]", count: 33)
        let noItems: [(text: String, valuesMax: Int)] = [(nested, 99), ("[[1,2,3]]", 3), (#"[{"a":1,"b":2}]"#, 2)]
        for (text, valuesMax) in noItems {
            #expect(throws: JSONReader.Problem.self) {
                try JSONReader.parse(Array(text.utf8), itemsAt: [], valuesMax: valuesMax, bytesMax: 100) { _ in true }
            }
        }
    }

    @Test func valuesAreLimited() {
        let text = Array("[[],0,{}]".utf8)
        #expect(JSONReader.read(text, valuesMax: 4) != nil)
        let problem = #expect(throws: JSONReader.Problem.self) { try JSONReader.parse(text, valuesMax: 3) }
        #expect(problem?.hasTooManyValues == true && problem?.offset == 6)
    }

    @Test func findsItsWay() {
        let value = read(#"{"a":{"b":[10,{"c":"x"}]},"n":null,"a.b":1}"#)
        #expect(value?.value(at: ["a", "b", "1", "c"])?.text == "x")
        #expect(value?.value(at: ["a", "b", "2"]) == nil)
        #expect(value?.value(at: ["n"]) == nil)
        #expect(value?.value(at: ["a", "b", "-1"]) == nil)
        #expect(value?.value(atFirstOf: [["x"], ["n"], ["a.b"]])?.text == "1")
        #expect(value?.value(at: ["a"])?.text == nil)
    }

    /// Whatever bytes come, and wherever they end.
    @Test(arguments: testSeeds(31...33))
    func survivesAnyBytes(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let text = Array(#"{"a":[1,-2.5e3,true,null,"x\u00e9\ud83d\ude00\n"],"b":{"c":"d"}}"#.utf8)
        let whole = text.indices.filter { JSONReader.read(Array(text[..<$0])) != nil }
        #expect(whole == [])
        for _ in 0..<6000 {
            var mutated = text
            for _ in 0...Int.random(in: 0...3, using: &generator) {
                let at = Int.random(in: 0..<mutated.count, using: &generator)
                mutated[at] = UInt8.random(in: 0...255, using: &generator)
            }
            if let value = JSONReader.read(mutated) { #expect(JSONReader.read(value.bytes) != nil, "seed \(seed)") }
        }
    }
}
