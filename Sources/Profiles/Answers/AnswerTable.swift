import Protocols

/// What each final status means under some rules, and what a body adds, in words for people.
package struct AnswerTable {
    package struct Row: Hashable, Sendable {
        /// The key under `response`, or a word for what has none.
        package var verdict: String
        /// Rising; empty = the words say which answers.
        package var statuses: [ClosedRange<Int>]
        /// Further conditions, and what is done; may be empty.
        package var words: String
    }

    private let rules: ResponseRules

    package init(_ rules: ResponseRules) { self.rules = rules }

    /// Each status is in one row, beside those of a collision, which come first.
    package var rows: [Row] {
        var statuses: [Action: [Int]] = [:]
        for status in 200...599 { statuses[action(for: status), default: []].append(status) }
        var rows = rules.collision.map {
            Row(verdict: "collision", statuses: $0.status.sorted().ranges, words: $0.words)
        }
        for action in Action.allCases {
            let words = action == .accepted ? terms : action.words
            if let some = statuses[action] {
                rows.append(Row(verdict: action.rawValue, statuses: some.ranges, words: words))
            }
            guard action == .accepted else { continue }
            if rules.okJSON != nil {
                rows.append(
                    Row(
                        verdict: Action.notConfirmed.rawValue, statuses: [],
                        words: "another value there: \(Action.notConfirmed.words)"))
            }
            if !rules.acceptsPages {
                rows.append(
                    Row(verdict: "web page", statuses: [], words: "a success with a page of HTML: the same batch again")
                )
            }
            if rules.readsBodies {
                let words = "a success whose body is cut short or of another form: the same batch again"
                rows.append(Row(verdict: "unclear", statuses: [], words: words))
            }
        }
        return rows
    }

    private enum Action: String, CaseIterable {
        case accepted
        case notConfirmed = "not confirmed"
        case retry
        case redirected
        case conflict
        case split
        case tooLarge = "too large"
        case authStop = "auth_stop"
        case goneStop = "gone_stop"
        case gone
        case misconfigured
        case withoutGzip = "without gzip"

        var words: String {
            switch self {
            case .accepted: ""
            case .notConfirmed: "sent again; after five times the batch is taken apart"
            case .retry: "sent again"
            case .redirected: "never followed; sent again, after five times the endpoint pauses"
            case .conflict: "sent again; after five times the endpoint pauses"
            case .split: "taken apart to find the row to blame"
            case .tooLarge: "sent in halves"
            case .authStop: "the credential is read again, then the endpoint pauses"
            case .goneStop: "the endpoint pauses; after an acceptance only the fifth time"
            case .gone: "the endpoint pauses, and stops at the seventh time"
            case .misconfigured: "the endpoint pauses"
            case .withoutGzip: "sent without compression, then the endpoint pauses"
            }
        }
    }

    private func action(for status: Int) -> Action {
        switch rules.meaning(of: status) {
        case .success: return .accepted
        case .notConfirmed: return .notConfirmed
        case .of(let group):
            switch Verdict(group, of: UplinkReply(status: status), after: nil) {
            case .authStop: return .authStop
            case .goneStop(410, _): return .gone
            case .goneStop: return .goneStop
            case .retry(.redirected, _): return .redirected
            case .retry(.conflict, _): return .conflict
            case .split: return .split
            case .tooLarge: return .tooLarge
            case .misconfigured: return .misconfigured
            case .encodingRefused: return .withoutGzip
            case .accepted, .partlyAccepted, .retry, .collision: return .retry
            }
        }
    }

    /// What the body of a success says.
    private var terms: String {
        var terms: [String] = []
        if let okJSON = rules.okJSON {
            let values = okJSON.isArray ? "an array" : okJSON.values.map { "\"\($0)\"" }.joined(separator: " or ")
            terms.append("if \(okJSON.paths.words) is \(values)\(okJSON.missingIsOk ? ", or not there" : "")")
        }
        if let itemErrors = rules.itemErrors {
            let again = (itemErrors.retryCodes + itemErrors.authCodes).map { "\"\($0)\"" }.joined(separator: ", ")
            let codes = again.isEmpty ? "" : " (sent again: \(again))"
            terms.append("without the rows that \([itemErrors.path].words) refuses\(codes)")
        }
        return terms.joined(separator: "; ")
    }
}

extension ResponseRules.CollisionSign {
    fileprivate var words: String {
        let meaning = "another device reports this asset: nothing is sent; before an acceptance the endpoint pauses"
        guard !paths.isEmpty else { return meaning }
        let value = equals.map { " is \"\($0)\"" } ?? contains.map { " has \"\($0)\"" } ?? " is there"
        return "if \(paths.words)\(value)\(status.isEmpty ? ", whatever the status" : ""); \(meaning)"
    }
}

extension [[String]] {
    /// Paths into a reply, as a profile has them.
    fileprivate var words: String {
        map { $0.isEmpty ? "the body" : $0.joined(separator: ".") }.joined(separator: " or ")
    }
}

extension [Int] {
    /// Rising numbers as ranges.
    fileprivate var ranges: [ClosedRange<Int>] {
        reduce(into: []) { ranges, number in
            if let last = ranges.last, last.upperBound + 1 == number {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
    }
}
