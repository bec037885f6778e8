import WaypostCore

extension UTCTime {
    /// `2026-03-02T07:00:00Z`; nil for anything else. The field is a real day and time, whole seconds.
    init?(argument: String) {
        let text = Array(argument.utf8)
        guard text.count == 20, text[19] == UInt8(ascii: "Z") else { return nil }
        let template = Array("0000-00-00T00:00:00".utf8)
        for (byte, model) in zip(text, template) {
            let digitExpected = model == UInt8(ascii: "0")
            guard digitExpected ? (48...57).contains(byte) : byte == model else { return nil }
        }
        func number(_ range: Range<Int>) -> Int { text[range].reduce(0) { $0 * 10 + Int($1) - 48 } }
        let (hour, minute, second) = (number(11..<13), number(14..<16), number(17..<19))
        guard let date = CivilDate(year: number(0..<4), month: number(5..<7), day: number(8..<10)),
            hour < 24, minute < 60, second < 60
        else { return nil }
        self.init(date: date, timeOfDay: ((hour * 60 + minute) * 60 + second) * 1000)
    }
}

extension Coordinate {
    /// `latitude,longitude` in degrees; nil when it is not two numbers in range.
    init?(argument: String) {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2, let latitude = Double(parts[0]), let longitude = Double(parts[1]) else { return nil }
        self.init(latitude: latitude, longitude: longitude)
    }
}
