import Protocols
import WaypostCore

/// When a server wants to be asked again, as it says so.
enum RetryWish: Hashable {
    /// A number of seconds, or what a server took for one.
    case seconds(String)
    /// The instant this many seconds from now.
    case date(Form, in: Int)

    enum Form {
        case imf, rfc850, asctime
        /// Without the `Date` of the reply, beside which it would mean something.
        case withoutClock
    }

    /// What a client has to wait for, seconds; nil = the wish is none, or none that a client would follow.
    var honoured: Int? {
        let seconds: Int? =
            switch self {
            case .seconds(let text): Int(text)
            case .date(.withoutClock, _): nil
            case .date(_, let seconds): seconds
            }
        return seconds.flatMap { (2...3600).contains($0) ? $0 : nil }
    }

    /// - Parameter now: Unix seconds, as the server believes.
    func headers(at now: Int64) -> [UplinkRequest.Header] {
        switch self {
        case .seconds(let text): return [.init("retry-after", text)]
        case .date(let form, let seconds):
            let wish = UplinkRequest.Header("retry-after", Self.text(now + Int64(seconds), form))
            return form == .withoutClock ? [wish] : [.init("date", Self.text(now, .imf)), wish]
        }
    }

    private static func text(_ seconds: Int64, _ form: Form) -> String {
        func two(_ number: Int) -> String { String(String(100 + number).dropFirst()) }
        let date = CivilDate(daysSince1970: Int(seconds / 86_400))
        let day = Int(seconds % 86_400)
        let clock = "\(two(day / 3600)):\(two(day / 60 % 60)):\(two(day % 60))"
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let month = months[date.month - 1]
        return switch form {
        // Clients ignore the day of the week.
        case .imf, .withoutClock: "Mon, \(two(date.day)) \(month) \(date.year) \(clock) GMT"
        case .rfc850: "Monday, \(two(date.day))-\(month)-\(two(date.year % 100)) \(clock) GMT"
        case .asctime: "Mon \(month) \(date.day < 10 ? " " : "")\(date.day) \(clock) \(date.year)"
        }
    }
}
