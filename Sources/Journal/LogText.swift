import Logging

extension Logger.Level {
    /// The severity of syslog (RFC 5424 table 2), 2 = critical … 7 = debug.
    var syslogPriority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

/// The metadata of one log statement: that of the handler, of the provider and of the statement, later ones winning.
struct LogFields {
    /// The kind of event, 32 lower-case hexadecimal digits, if the statement names one.
    private(set) var messageID: String?
    /// Sorted, so that the same statement always gives the same bytes.
    private(set) var pairs: [(key: String, value: String)] = []

    init(_ layers: Logger.Metadata?..., error: (any Error)? = nil) {
        var all: Logger.Metadata = [:]
        for case .some(let layer) in layers { all.merge(layer) { _, later in later } }
        if let error, all["error"] == nil { all["error"] = "\(error)" }
        for (key, value) in all {
            // The journal keeps a field with several values as several fields, each of which can be searched for.
            let values = if case .array(let values) = value { values } else { [value] }
            for text in values.map({ "\($0)" }) {
                if key == "message_id", Self.isMessageID(text) {
                    messageID = text
                } else {
                    pairs.append((key, text))
                }
            }
        }
        pairs.sort { ($0.key, $0.value) < ($1.key, $1.value) }
    }

    private static func isMessageID(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }
}
