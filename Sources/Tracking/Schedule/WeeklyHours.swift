import WaypostCore

/// Hours of a week in local time: `mon-fri 08:00-18:00`.
public struct WeeklyHours: Hashable, Sendable {
    /// As written; hours that any of them names.
    public let texts: [String]
    /// Minutes of the week (0 = Monday 00:00) at which the hours begin or end, rising, the two in turn; the first of
    /// them ends hours if it is open before.
    private let changes: [Int64]
    private let isOpenAtWeekStart: Bool

    static let minutesPerWeek: Int64 = 7 * 24 * 60
    private static let secondsPerWeek = minutesPerWeek * 60

    /// What is wrong with a text, and where.
    public struct Mistake: Error, Hashable, Sendable {
        /// The text that is wrong.
        public var text: String
        /// Characters before the mistake.
        public var offset: Int
        /// What stands there; empty at the end of the text.
        public var found: String
        public var expected: String
        /// What stands there, corrected.
        public var suggestion: String?
    }

    /// Days, then times, both as lists of single ones and ranges: `mon,wed-fri 08:00-12:00,13:00-17:00`. Days alone are
    /// whole days, times alone are of each day. Times that run backwards end on the next day; `24:00` ends a day.
    public init(parsing text: String) throws(Mistake) { try self.init(parsing: [text]) }

    /// All that one of several texts names.
    public init(parsing texts: [String]) throws(Mistake) {
        var minutes = [Bool](repeating: false, count: Int(Self.minutesPerWeek))
        for text in texts {
            var parser = Parser(text)
            for span in try parser.spans() {
                for minute in span { minutes[minute % minutes.count] = true }
            }
        }
        self.init(texts: texts, minutes)
    }

    private init(texts: [String], _ minutes: [Bool]) {
        self.texts = texts
        isOpenAtWeekStart = minutes[0]
        changes = minutes.indices.compactMap { minute in
            minute > 0 && minutes[minute] != minutes[minute - 1] ? Int64(minute) : nil
        }
    }

    /// - Parameter local: seconds since 1970-01-01 00:00 in local time.
    func isOpen(atLocal local: Int64) -> Bool {
        let minute = Self.secondOfWeek(local) / 60
        let passed = changes.prefix { $0 <= minute }.count
        return isOpenAtWeekStart == (passed % 2 == 0)
    }

    /// Seconds from a local time to the next one at which the hours begin or end; nil = they never do.
    func secondsToChange(fromLocal local: Int64) -> Int64? {
        let second = Self.secondOfWeek(local)
        if let next = changes.first(where: { $0 * 60 > second }) { return next * 60 - second }
        guard let first = changes.first else { return nil }
        let toWeekEnd = Self.secondsPerWeek - second
        // Open on Sunday at 24:00 and closed on Monday at 0:00, or the other way about.
        return changes.count % 2 == 1 ? toWeekEnd : toWeekEnd + first * 60
    }

    private static func secondOfWeek(_ local: Int64) -> Int64 {
        // 1970-01-01 was a Thursday.
        let second = (local % secondsPerWeek + 3 * 86_400) % secondsPerWeek
        return second < 0 ? second + secondsPerWeek : second
    }
}

extension WeeklyHours {
    private struct Parser {
        private let text: String
        private var rest: Substring

        init(_ text: String) {
            self.text = text
            rest = text[...]
        }

        private static let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        private static let wholeDay = 0...24 * 60
        private static let dayExpected = "a day (mon, tue, wed, thu, fri, sat, sun)"
        private static let timeExpected = "a time from 00:00 to 24:00"

        /// Minutes of the week; may run beyond its end.
        mutating func spans() throws(Mistake) -> [Range<Int>] {
            skipBlanks()
            guard let first = rest.first else { throw mistakeHere("days, times or both: \"mon-fri 08:00-18:00\"") }
            var days = Set(0..<7)
            var times: [(from: Int, to: Int)] = [(0, 24 * 60)]
            if !first.isNumber {
                days = try readDays()
                if !rest.isEmpty { times = try readTimes() }
            } else {
                times = try readTimes()
            }
            guard rest.isEmpty else { throw mistakeHere("\",\" or the end") }
            return days.sorted().flatMap { day in
                times.map { time in
                    let end = time.to > time.from ? time.to : time.to + 24 * 60
                    return day * 24 * 60 + time.from..<day * 24 * 60 + end
                }
            }
        }

        private mutating func readDays() throws(Mistake) -> Set<Int> {
            var days: Set<Int> = []
            repeat {
                let first = try day()
                guard skip("-") else {
                    days.insert(first)
                    continue
                }
                let last = try day()
                // fri-mon goes over the end of the week.
                for day in first...(last >= first ? last : last + 7) { days.insert(day % 7) }
            } while skip(",")
            return days
        }

        private mutating func readTimes() throws(Mistake) -> [(from: Int, to: Int)] {
            var times: [(from: Int, to: Int)] = []
            repeat {
                let start = rest
                let from = try time()
                guard from < 24 * 60 else {
                    rest = start
                    throw mistakeHere("a time before 24:00 at which the hours begin")
                }
                guard skip("-") else { throw mistakeHere("\"-\" and the time at which the hours end") }
                let end = rest
                let to = try time()
                guard from != to else {
                    rest = end
                    throw mistakeHere("another time than the one at which the hours begin")
                }
                times.append((from, to))
            } while skip(",")
            return times
        }

        private mutating func day() throws(Mistake) -> Int {
            let word = rest.prefix { $0.isLetter }
            guard let day = Self.days.firstIndex(of: word.lowercased()) else {
                let start = word.prefix(3).lowercased()
                let meant = Self.days.contains(start) ? start : nearest(word.lowercased(), in: Self.days)
                throw mistakeHere(Self.dayExpected, suggestion: meant)
            }
            rest = rest.dropFirst(word.count)
            skipBlanks()
            return day
        }

        private mutating func time() throws(Mistake) -> Int {
            let word = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ":") }
            let parts = word.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, (1...2).contains(parts[0].count), parts[1].count == 2,
                let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60,
                Self.wholeDay.contains(hour * 60 + minute)
            else { throw mistakeHere(Self.timeExpected) }
            rest = rest.dropFirst(word.count)
            skipBlanks()
            return hour * 60 + minute
        }

        private mutating func skip(_ character: Character) -> Bool {
            guard rest.first == character else { return false }
            rest.removeFirst()
            skipBlanks()
            return true
        }

        private mutating func skipBlanks() { rest = rest.drop { $0 == " " } }

        private func mistakeHere(_ expected: String, suggestion: String? = nil) -> Mistake {
            // To the next separator, at least one character.
            let word = rest.prefix { $0 != " " && $0 != "," && $0 != "-" }
            return Mistake(
                text: text, offset: text.distance(from: text.startIndex, to: rest.startIndex),
                found: String(word.isEmpty ? rest.prefix(1) : word.prefix(20)), expected: expected,
                suggestion: suggestion)
        }
    }
}
