/// Collects the GSV sentences of one cycle into a view, which counts until the next is complete.
///
/// A cycle has one group of sentences for each constellation and signal, in any order and with others between them. It is
/// complete when a group begins that was already in it. GSV is half of what many receivers send, so only one cycle of many
/// is read: the view is for people.
struct SatelliteSurvey: Sendable {
    /// Of so many cycles one is read, unless all are: every minute at 1 Hz.
    private static let cyclesForOne = 60
    /// Sentences, for receivers that seldom send the list.
    private static let pauseMax = 2000
    private static let groupsMax = 16
    private static let messagesMax = 16
    /// What receivers report is below 60.
    private static let strengthMax = 99
    private static let satellitesInSentence = 4
    /// The signal id of satellites of which no signal is received (u-blox, NMEA 4.11).
    private static let noSignal = UInt8(ascii: "0")

    private struct Group {
        /// As in `SentenceAddress.talker`.
        var talker: UInt16
        /// nil before NMEA 4.10.
        var signal: UInt8?
        /// As the receiver says.
        var inView: Int
        /// How many satellites are received with each strength.
        var strengths = InlineArray<100, UInt8>(repeating: 0)
        /// Of all strengths.
        var sum = 0

        mutating func add(_ strength: Int) {
            guard strengths[strength] < .max else { return }
            strengths[strength] += 1
            sum += strength
        }
    }

    /// Whether the next cycle is read after each.
    let isThorough: Bool
    private(set) var view: SatelliteView?
    private var groups: [Group] = []
    /// Sentences of any kind before the cycle that is read.
    private var beganAt = 0
    /// The same of the next one to read.
    private var nextAt = 0

    init(isThorough: Bool) { self.isThorough = isThorough }

    /// - Parameter sentences: how many sentences there were so far.
    @inline(__always)
    func isDue(sentences: Int) -> Bool { sentences >= nextAt }

    /// - Parameters:
    ///   - bytes: from `$` to the byte before `*`; anything may be cut or wrong in it.
    ///   - fields: index of the first field.
    mutating func add(_ bytes: Span<UInt8>, talker: UInt16, fields: Int, sentences: Int) {
        var cursor = FieldCursor(position: fields)
        guard let messages = cursor.integer(in: bytes), let number = cursor.integer(in: bytes),
            (1...Self.messagesMax).contains(messages), (1...messages).contains(number),
            let total = cursor.integer(in: bytes), total <= messages * Self.satellitesInSentence
        else { return }
        let start = cursor.position
        let signal = Self.signal(bytes, from: start)
        var group = groups.firstIndex { $0.talker == talker && $0.signal == signal }
        if number == 1 {
            if group != nil {
                complete(sentences: sentences)
                return
            }
            guard groups.count < Self.groupsMax else { return }
            if groups.isEmpty { beganAt = sentences }
            group = groups.count
            groups.append(Group(talker: talker, signal: signal, inView: total))
        }
        // Without its first sentence the total of the group is not in the view.
        if let group { addStrengths(bytes, from: start, to: group) }
    }

    /// A stream that starts again may be of another receiver.
    mutating func reset(sentences: Int) {
        self = SatelliteSurvey(isThorough: isThorough)
        nextAt = sentences
    }

    /// The last field where there is one more than satellites of four fields each need.
    private static func signal(_ bytes: Span<UInt8>, from start: Int) -> UInt8? {
        guard start <= bytes.count else { return nil }
        var commas = 0
        for index in start..<bytes.count where bytes[index] == UInt8(ascii: ",") { commas += 1 }
        guard commas % 4 == 0, let last = bytes.count > start ? bytes[bytes.count - 1] : nil else { return nil }
        return last == UInt8(ascii: ",") ? nil : last
    }

    private mutating func addStrengths(_ bytes: Span<UInt8>, from start: Int, to group: Int) {
        var cursor = FieldCursor(position: start)
        for _ in 0..<Self.satellitesInSentence {
            cursor.skip(3, in: bytes)
            guard cursor.position < bytes.count else { return }
            guard let strength = cursor.integer(in: bytes), (1...Self.strengthMax).contains(strength) else { continue }
            groups[group].add(strength)
        }
    }

    private mutating func complete(sentences: Int) {
        var inView = 0
        var strengths = [Int](repeating: 0, count: Self.strengthMax + 1)
        for index in groups.indices where counts(index) {
            inView += groups[index].inView
            for strength in 1...Self.strengthMax { strengths[strength] += Int(groups[index].strengths[strength]) }
        }
        let heard = strengths.reduce(0, +)
        // Cut groups may list more than their totals say.
        var view = SatelliteView(inView: max(inView, heard), strong: strengths[SatelliteView.strongMin...].reduce(0, +))
        var below = 0
        for strength in 1...Self.strengthMax where strengths[strength] > 0 {
            view.best = strength
            if below * 2 < heard { view.median = strength }
            below += strengths[strength]
        }
        self.view = view
        groups.removeAll(keepingCapacity: true)
        nextAt = sentences + (isThorough ? 0 : min((sentences - beganAt) * Self.cyclesForOne, Self.pauseMax))
    }

    /// A satellite sends several signals and stands in the group of each: it counts with the one that is received best, in
    /// whatever order the groups come, since a survey may begin with any of them.
    private func counts(_ index: Int) -> Bool {
        let group = groups[index]
        guard group.signal != Self.noSignal else { return true }
        return !groups.indices.contains { other in
            let rival = groups[other]
            guard other != index, rival.talker == group.talker, rival.signal != Self.noSignal else { return false }
            return (rival.sum, rival.inView, index) > (group.sum, group.inView, other)
        }
    }
}
