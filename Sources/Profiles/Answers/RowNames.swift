import WaypostCore

/// The names by which a reply may speak of the rows of a batch: any reference of a record.
struct RowNames {
    let batch: Batch
    let renderer: RequestRenderer

    /// The values of one reference for all rows, looked up by the value that an entry gives.
    struct Column {
        private var texts: [String?]
        /// Places of rows by their text, by the instant that it is, by the second where it has no fraction, and by the
        /// number that it is.
        private var byText: [String: [Int]] = [:]
        private var byInstant: [Int64: [Int]] = [:]
        private var bySecond: [Int64: [Int]] = [:]
        private var byNumber: [Double: [Int]] = [:]

        fileprivate init(_ texts: [String?]) {
            self.texts = texts
            for (place, text) in texts.enumerated() {
                guard let text else { continue }
                byText[text, default: []].append(place)
                if let instant = UTCTime.milliseconds(iso8601: text) {
                    // A time of whole seconds names the second.
                    if text.utf8.count == 20 {
                        bySecond[instant.flooredThousandth, default: []].append(place)
                    } else {
                        byInstant[instant, default: []].append(place)
                    }
                } else if let number = Double(text) {
                    byNumber[number, default: []].append(place)
                }
            }
        }

        /// The places of the rows that an entry may mean.
        fileprivate func places(of answer: Answer) -> [Int] {
            var found = [byText[answer.text]]
            if let instant = answer.instant {
                found += [byInstant[instant], bySecond[instant.flooredThousandth]]
            }
            if let number = answer.number {
                // The same number in other digits; long integers have no other digits.
                let isInteger = Int64(answer.text) != nil
                found.append(byNumber[number]?.filter { !isInteger || texts[$0].flatMap { Int64($0) } == nil })
            }
            let lists = found.compactMap { $0 }.filter { !$0.isEmpty }
            return lists.count > 1 ? Set(lists.joined()).sorted() : lists.first ?? []
        }
    }

    /// The value by which an entry names a row.
    fileprivate struct Answer {
        var text: String
        var instant: Int64?
        var number: Double?

        init?(_ value: JSONValue?) {
            guard let value, let text = value.text else { return nil }
            self.text = text
            // As instants: a server may write the same one differently.
            instant = UTCTime.milliseconds(iso8601: text)
            switch value {
            case .int, .decimal, .double: number = Double(text)
            default: number = nil
            }
        }
    }

    /// - Parameter reference: `seq` or `$seq`, with or without casts.
    func column(_ reference: String) -> Column {
        Column(renderer.texts(of: reference, for: batch))
    }

    /// The rows of which all columns have the value that an entry gives; none when there is no column.
    func seqs(by values: [(column: Column, value: JSONValue?)]) -> [Int64] {
        var lists: [[Int]] = []
        for (column, value) in values {
            guard let answer = Answer(value) else { return [] }
            lists.append(column.places(of: answer))
        }
        // The shortest first: a column in which all rows are the same does not count for much.
        lists.sort { $0.count < $1.count }
        var places = lists.first ?? []
        for list in lists.dropFirst() where !places.isEmpty { places.removeAll { !list.holds($0) } }
        return places.map { batch.rows[$0].seq }
    }
}

extension [Int] {
    /// Whether a rising list has this number.
    fileprivate func holds(_ number: Int) -> Bool {
        var low = startIndex
        var high = endIndex
        while low < high {
            let middle = low + (high - low) / 2
            if self[middle] < number { low = middle + 1 } else { high = middle }
        }
        return low < endIndex && self[low] == number
    }
}
