import Positioning

/// The names by which a reply may speak of the rows of a batch: any reference of a record.
struct RowNames {
    let batch: Batch
    let settings: EndpointSettings
    let context: RenderContext

    /// What one reference gives for each row.
    struct Column {
        fileprivate var texts: [String?]
        /// Unix milliseconds of those that are times.
        fileprivate var instants: [Int64?]

        fileprivate func names(_ place: Int, _ answer: Answer) -> Bool {
            guard let text = texts[place] else { return false }
            if text == answer.text { return true }
            if let instant = instants[place], let other = answer.instant {
                // A time of whole seconds names the second.
                return text.utf8.count == 20 ? instant.flooredThousandth == other.flooredThousandth : instant == other
            }
            // The same number in other digits; long integers have no other digits.
            guard let number = answer.number, Int64(text) == nil || Int64(answer.text) == nil else { return false }
            return Double(text) == number
        }
    }

    /// What an entry says a row is called.
    fileprivate struct Answer {
        var text: String
        var instant: Int64?
        var number: Double?

        init?(_ value: JSONValue?) {
            guard let value, let text = value.text else { return nil }
            self.text = text
            // As instants: a server may write the same one in another way.
            instant = UTCTime.milliseconds(iso8601: text)
            switch value {
            case .int, .decimal, .double: number = Double(text)
            default: number = nil
            }
        }
    }

    /// - Parameter reference: `seq` or `$seq`, with or without casts.
    func column(_ reference: String) -> Column {
        let texts = settings.texts(of: reference, for: batch, in: context)
        return Column(texts: texts, instants: texts.map { $0.flatMap(UTCTime.milliseconds(iso8601:)) })
    }

    /// The rows of which all columns have the value that an entry gives; none when there is no column.
    func seqs(by values: [(column: Column, value: JSONValue?)]) -> [Int64] {
        var places = values.isEmpty ? [] : Array(batch.rows.indices)
        for (column, value) in values {
            guard let answer = Answer(value) else { return [] }
            places.removeAll { !column.names($0, answer) }
        }
        return places.map { batch.rows[$0].seq }
    }
}
