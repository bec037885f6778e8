import Testing
import WaypostCore
import WaypostNMEA

@Suite("Framing and checksum") struct FramingTests {
    private let good = rmc("101502")

    @Test func completesAtTheLastHexDigitWithoutLineEnd() {
        #expect(decode(good.replacing("\r\n", with: "")).fixes.count == 1)
    }

    @Test(arguments: ["", "\r", "\n", " ", "\u{0}\u{1}", "text # with * and ,", "\\s:1,c:2*00\\"])
    func readsGluedAndSeparatedSentences(between: String) {
        let bytes = Array((rmc("101502") + between + rmc("101503") + between + rmc("101504")).utf8)
        #expect(decode(bytes).fixes.count == 3)
    }

    @Test func takesHexDigitsInEitherCase() {
        let body = "GPRMC,101502,A,4807.0380,N,01131.0000,E,,,230394,,,A"
        let upper = sentence(body)
        #expect(upper != upper.lowercased())
        let star = upper.firstIndex(of: "*")!
        #expect(decode(upper[..<star] + upper[star...].lowercased()).counters.sentences == 1)
    }

    @Test func dropsAWholeSentenceWithAWrongChecksum() {
        let result = decode(good + rmc("101503").replacing("4807", with: "4808") + rmc("101504"))
        #expect(result.fixes.map(\.timeOfDay) == [36_902_000, 36_904_000])
        #expect(result.counters.checksumErrors == 1)
    }

    @Test(arguments: ["*", "*4", "*G1", "*4G", "* 4B", "**4B"])
    func dropsAMalformedChecksum(_ ending: String) {
        let result = decode("$GPRMC,101502,A,4807.0380,N,01131.0000,E,,,230394,,,A\(ending)\r\n" + rmc("101503"))
        #expect(result.fixes.map(\.timeOfDay) == [36_903_000])
        #expect(result.counters.checksumErrors == 1)
    }

    @Test(arguments: ["$", "!", "\t", "\u{7F}", "\u{80}", "\r", "\u{0}"])
    func startsAfreshAfterABrokenSentence(breaking: String) {
        #expect(decode("$GPGGA,10\(breaking)" + good).fixes.count == 1)
    }

    @Test(arguments: [0x00, 0x09, 0x1F, 0x7F, 0x80, 0xFF] as [UInt8])
    func noSentenceHoldsAByteThatIsNotPrintable(byte: UInt8) {
        for place in [8, 13, 16] {
            var body = Array("GPTXT,01,01,02,plain text".utf8)
            body[place] = byte
            var bytes = [UInt8(ascii: "$")] + body + [UInt8(ascii: "*")]
            let checksum = String(body.reduce(0, ^), radix: 16, uppercase: true)
            bytes += Array((checksum.utf8.count < 2 ? "0" + checksum : checksum).utf8)
            let result = decode(bytes + Array(good.utf8))
            #expect(result.counters.sentences == 1)
            #expect(result.counters.badBytes == 1)
        }
    }

    @Test func aDollarInBinaryDataCostsNothingButItself() {
        var bytes: [UInt8] = [0xB5, 0x62, 0x24, 0x01, 0xFF, 0x24, 0x24, 0x41]
        bytes += Array(good.utf8)
        bytes += [0xD3, 0x00, 0x24, 0x30, 0x30]
        bytes += Array(rmc("101503").utf8)
        #expect(decode(bytes).fixes.count == 2)
    }

    /// In a log that some program has written in small letters, with the checksums of the original or with its own.
    @Test func readsSentencesInLowerCase() throws {
        let lowered = rmc("101502", speed: "10.0").lowercased()
        let body = lowered.dropFirst().prefix { $0 != "*" }
        for text in [lowered, sentence(String(body))] {
            let fix = try #require(decode(text).fixes.first)
            #expect(fix == decode(rmc("101502", speed: "10.0")).fixes.first)
            for cut in 1..<text.utf8.count { #expect(decode(Array(text.utf8), cuts: [cut]).fixes == [fix]) }
        }
        let damaged = lowered.replacing("4807", with: "4808")
        #expect(decode(damaged).counters.checksumErrors == 1)
    }

    @Test func countsBytesThatAreInNoSentence() {
        let cases: [(String, Int)] = [
            (good, 0), ("\r\n\n" + good, 0), ("abc " + good, 4), ("$GPGGA,10" + good, 9),
            ("$GPGGA,1*00\r\n" + good, 11),
            ("$\u{0}" + good, 2), (String(repeating: "x", count: 200) + "\n", 200),
            ("$" + String(repeating: "x", count: 200) + "\n", 201), ("$PVNDR,1\r\n", 0),
        ]
        for (text, count) in cases { #expect(decode(text).counters.strayBytes == count, "\(text)") }
        var decoder = NMEADecoder()
        let bytes = Array(good.utf8.prefix(20))
        decoder.decode(bytes.span, at: .zero) { _, _ in }
        #expect(decoder.counters.strayBytes == 0)
        decoder.datagramEnded()
        #expect(decoder.counters.strayBytes == 20 && decoder.counters.badBytes == 1)
    }

    @Test func countsEncapsulatedSentencesAsUnknown() {
        let result = decode(sentence("AIVDM,1,1,,A,14eG;o@034o8sd<L9i:a;WF>062D,0", start: "!") + good)
        #expect(result.counters.sentences == 2)
        #expect(result.counters.unknownTypes == 1)
    }

    private func vendorLine(length: Int) -> String {
        let line = sentence("PTEST," + String(repeating: "x", count: length - 10))
        precondition(line.utf8.count - 2 == length)
        return line
    }

    @Test(arguments: [(128, 128, 0), (129, 128, 1), (82, 82, 0), (83, 82, 1), (256, 256, 0), (257, 300, 1)])
    func dropsWhatIsLongerThanTheSetting(length: Int, setting: Int, dropped: Int) {
        let result = decode(vendorLine(length: length) + good, settings: .init(maximumLength: setting))
        #expect(result.counters.tooLong == dropped)
        #expect(result.counters.sentences == 2 - dropped)
        #expect(result.fixes.count == 1)
    }

    @Test func findsASentenceInsideAnOverlongLine() {
        let line = "$GPTXT," + String(repeating: "x", count: 70) + good
        let result = decode("$" + String(repeating: "y", count: 5000) + line)
        #expect(result.fixes.count == 1)
        #expect(result.counters.tooLong == 1)
    }

    @Test(arguments: [
        "GPRMC,101502,A,4807.0380,N,01131.0000,E,,,230394,,,A", "GPGGA,101502,4807.0380,N,01131.0000,E,1,08,0.9,,,,,,",
        "GPGLL,4807.0380,N,01131.0000,E,101502,A,A", "GPGNS,101502,4807.0380,N,01131.0000,E,AA,10,0.8,1.0,2.0,,",
        "GPVTG,1,T,,M,2,N,3,K", "GPGSA,A,3,,,,,,,,,,,,,1,1,1", "GPZDA,101502,23,03,1994,,", "GPGST,101502,,,,,1,1,1",
        "GPGBS,101502,1,1,1,,,,", "PGRME,1,M,2,M,3,M",
    ])
    func needsAChecksumOnKnownSentences(_ body: String) {
        let result = decode("$\(body)\r\n")
        #expect(result.counters.missingChecksums == 1)
        #expect(result.counters.sentences == 0)
        #expect(result.epochs.isEmpty)
        for end in ["\n", "\r"] {
            let allowed = decode("$\(body)\(end)", settings: .init(allowMissingChecksum: true))
            #expect(allowed.counters.sentences == 1 && allowed.epochs.isEmpty != body.contains("4807"))
        }
    }

    @Test func aVendorLineWithoutChecksumLeavesTheEpochWhole() {
        let result = decode(rmc("101502", speed: "10.0") + "$PVNDR,1,2,3\r\n" + gga("101502") + rmc("101503"))
        #expect(result.fixes.count == 2)
        #expect(result.fixes[0].altitudeMSL == 545.4)
        #expect(result.fixes[0].speed != nil)
        #expect(result.counters.unknownTypes == 1)
        #expect(result.counters.missingChecksums == 0)
    }

    @Test func aSentenceDoesNotGoOnInTheNextDatagram() {
        var decoder = NMEADecoder()
        var fixes = 0
        let bytes = Array(good.utf8)
        decoder.decode(bytes.span.extracting(0..<20), at: .zero) { _, _ in fixes += 1 }
        decoder.datagramEnded()
        decoder.decode(bytes.span.extracting(20..<bytes.count), at: .zero) { _, _ in fixes += 1 }
        decoder.endOfInput { _, _ in fixes += 1 }
        #expect(fixes == 0)
        #expect(decoder.counters.bytes == bytes.count)
    }
}

@Suite("Addresses") struct AddressTests {
    @Test(arguments: ["GP", "GL", "GA", "GB", "BD", "GQ", "QZ", "GI", "GN", "II", "IN"])
    func takesAnyTalker(_ talker: String) {
        #expect(decode(sentence("\(talker)RMC,101502,A,4807.0380,N,01131.0000,E,,,230394,,,A")).fixes.count == 1)
    }

    @Test(arguments: ["PGRMC", "GGPRMC", "RMC", "GPRMCX", "gprmc", "G1RMC", "GPRM", "PRMC", ""])
    func takesNothingElseForAnRMC(_ address: String) {
        let result = decode(sentence("\(address),101502,A,4807.0380,N,01131.0000,E,,,230394,,,A"))
        #expect(result.epochs.isEmpty)
        #expect(result.counters.unknownTypes == 1)
    }

    @Test func takesPositionsOfOneTalkerWhenSet() {
        let other = "GL" + rmc("101502.3").dropFirst(3).prefix { $0 != "*" }
        let text = rmc("101502") + sentence(other) + gsa(mode: "3", talker: "GN") + gga("101502")
        #expect(decode(text).fixes.count == 3)
        let one = decode(text, settings: .init(talker: "GP")).fixes
        #expect(one.count == 1)
        #expect(one[0].mode == .threeD)
        #expect(one[0].altitudeMSL == 545.4)
    }

    @Test func skipsGSVAndCountsItsChecksum() {
        let line = sentence("GPGSV,1,1,01,21,00,000,32")
        let result = decode(line + line.replacing("32", with: "33"))
        #expect(result.counters.sentences == 1)
        #expect(result.counters.unknownTypes == 0)
        #expect(result.counters.checksumErrors == 1)
    }
}
