import Configuration
import Sensors
import WaypostControl
import WaypostCore
import WaypostNMEA

/// What comes from the receiver: checks 13 to 17 and 26. The daemon has the line open, so it is asked.
enum SignalChecks {
    /// Of all sentences: fewer broken ones are usual on a long cable.
    private static let brokenShare = 0.05
    private static let coldStart = 1800.0
    /// Without a fix for this long the receiver is not in a tunnel.
    private static let staleFix = 120.0
    private static let usedMin = 4
    private static let weekSeconds = 604_800.0
    private static let rolloverWeeks = 1024.0
    private static let daySeconds = 86_400.0

    static func sentences(_ evidence: Evidence) -> Finding {
        guard let source = evidence.status?.source else { return evidence.noStatus }
        switch source.state {
        case "asleep": return .ok("the receiver is asleep \(source.reason ?? "")")
        case "ended": return .ok("the file was read to its end")
        case "lost": return .broken(source.reason ?? "the receiver is lost", evidence.sourceLog)
        case "silent": return silent(evidence)
        case "unreadable":
            guard case .serial(let settings)? = evidence.config?.source else {
                return .broken(StrayCause.unreadable(strayCause(evidence)), evidence.sourceLog)
            }
            return .broken(StrayCause.unreadable(at: settings.speed) + framing(evidence), evidence.tryAuto)
        case "receiving": return received(source, evidence)
        default: return .unknown("the receiver is being opened", evidence.waypost("status"))
        }
    }

    private static func isSerial(_ evidence: Evidence) -> Bool {
        if case .serial? = evidence.config?.source { true } else { false }
    }

    private static func strayCause(_ evidence: Evidence) -> String {
        switch evidence.config?.source {
        case .tcp?: StrayCause.tcp
        case .udp?: StrayCause.udp
        case .gpsd?: StrayCause.gpsd
        case .file?: StrayCause.file
        case .serial?, nil: StrayCause.serial
        }
    }

    private static func silent(_ evidence: Evidence) -> Finding {
        switch evidence.config?.source {
        case .serial?:
            .broken("the line is open, and nothing arrives: power, wiring (TX to RX)", evidence.tryAuto)
        case .file?: .ok("the file has nothing new")
        case .gpsd?: .broken("gpsd answers, and sends no fixes: is a receiver with it?", evidence.sourceLog)
        case .tcp?: .broken("the other side accepts the connection, and sends nothing", evidence.sourceLog)
        case .udp?: .broken("no packet arrives: does the sender know this host and port?", evidence.sourceLog)
        case nil: .broken("nothing arrives", evidence.sourceLog)
        }
    }

    private static func received(_ source: SourceStatus, _ evidence: Evidence) -> Finding {
        if let stray = source.stray { return .degraded(stray, evidence.tryAuto) }
        let broken = [source.checksumErrors, source.badBytes, source.tooLong].reduce(0) { $0 + Double($1) }
        let share = broken / max(1, broken + Double(source.sentences))
        guard broken >= 10, share > brokenShare else {
            return .ok("\(source.sentences) sentences, \(InWords.whole(broken)) broken")
        }
        return .degraded(
            "\(InWords.whole(share * 100)) % of the sentences are broken: cable, earth, or a second reader",
            evidence.tryAuto)
    }

    /// What the kernel counted for a UART of the board; it keeps no such count for USB.
    private static func framing(_ evidence: Evidence) -> String {
        guard case .line(let line) = evidence.receiver else { return "" }
        let digits = line.name.drop { !$0.isNumber }
        for file in ["serial", "ttyAMA"] where line.name.hasPrefix(file == "serial" ? "ttyS" : "ttyAMA") {
            let counts = evidence.host.lines("/proc/tty/driver/\(file)")?.first { $0.hasPrefix("\(digits):") }
            let errors = counts?.split(separator: " ").first { $0.hasPrefix("fe:") }?.dropFirst(3)
            if let count = errors.flatMap({ Int($0) }) { return " (\(InWords.count(count, "framing error")))" }
        }
        return ""
    }

    static func lineSpeed(_ evidence: Evidence) -> Finding {
        guard let source = evidence.status?.source else { return evidence.noStatus }
        guard case .serial? = evidence.config?.source else {
            return evidence.config == nil ? evidence.noConfiguration : .ok("does not apply: no serial line")
        }
        if case .line(let line) = evidence.receiver, line.name.hasPrefix("ttyACM") {
            return .ok("does not apply: USB, whose speed is its own")
        }
        guard let baud = source.baud, baud > 0, let bytesPerSecond = evidence.bytesPerSecond else {
            return .unknown("the speed of the line is not known yet", evidence.waypost("doctor"))
        }
        // A start bit and a stop bit around eight.
        let load = bytesPerSecond * 10 / Double(baud)
        let percent = InWords.whole(min(load, 9.99) * 100)
        if load > 0.9 {
            return .degraded(
                "\(percent) % of \(baud) baud are used: sentences come late or cut",
                "baud = 38400  # in [source], once the receiver is set to it, or let it send fewer sentences")
        }
        return .ok("\(percent) % of \(baud) baud used")
    }

    static func fix(_ evidence: Evidence) -> Finding {
        guard let status = evidence.status else { return evidence.noStatus }
        let source = status.source
        let sky = skyWords(source)
        let watch = "watch -n 5 \(evidence.waypost("doctor"))"
        if source.state == "asleep" || source.state == "ended" { return .ok("does not apply: \(source.state)") }
        if let fault = source.fault { return .degraded(fault, evidence.waypost("status")) }
        if let unbelieved = source.unbelieved { return .degraded(unbelieved, evidence.waypost("status")) }
        if let age = status.motion.lastFixAge, age < staleFix, source.state == "receiving" {
            return .ok("\(InWords.about(seconds: age)) ago\(sky)")
        }
        let since = status.motion.lastFixAge ?? status.uptime ?? 0
        let isFirst = status.motion.lastFixAge == nil
        let start =
            "no fix \(isFirst ? "in the" : "for") \(InWords.about(seconds: since))\(isFirst ? " since the start" : "")"
        guard source.state == "receiving" else { return .degraded("\(start): the receiver is \(source.state)", watch) }
        if isFirst, since < staleFix { return .unknown("\(start)\(sky): a cold start takes up to 12 min") }
        guard let inView = source.satellitesInView else {
            return .degraded("\(start); the receiver lists no satellites", evidence.waypost("status"))
        }
        if inView == 0 {
            return .degraded("\(start): it sees no satellite: antenna, its cable, or no sky at all", watch)
        }
        if let strong = source.satellitesStrong, strong < usedMin {
            return .degraded(
                "\(start)\(sky): weak, give the antenna sky, away from USB 3, cameras and disks", watch)
        }
        if since < coldStart { return .degraded("\(start)\(sky): a cold start takes up to 12 min; wait", watch) }
        return .degraded("\(start), though satellites are strong\(sky): restart the receiver", watch)
    }

    /// `, 9 of 14 satellites, best 47 dB-Hz`
    private static func skyWords(_ source: SourceStatus) -> String {
        guard let inView = source.satellitesInView else { return "" }
        let used = source.satellitesUsed.map { "\($0) of " } ?? ""
        return ", \(used)\(inView) satellites" + (source.bestCN0.map { ", best \($0) dB-Hz" } ?? "")
    }

    static func antenna(_ evidence: Evidence) -> Finding {
        guard let source = evidence.status?.source else { return evidence.noStatus }
        switch source.antenna.flatMap(AntennaState.init) {
        case .ok: return .ok("the receiver reports it as good")
        case .open:
            return .broken("the receiver reports an open antenna: plug it in", evidence.waypost("status --json"))
        case .short:
            return .broken(
                "the receiver reports a short in the antenna or its cable", evidence.waypost("status --json"))
        case nil: return .unknown("this receiver does not report it")
        }
    }

    static func date(_ evidence: Evidence) -> Finding {
        guard let status = evidence.status else { return evidence.noStatus }
        if evidence.isFile { return .ok("does not apply: the source is a file") }
        if let fault = status.source.dateFault { return .degraded(fault, evidence.showClock) }
        // One of the run before has no age.
        guard let text = status.motion.lastFix, let fix = UTCTime.milliseconds(iso8601: text),
            let age = status.motion.lastFixAge
        else {
            let isDateless = status.source.dateless > 0
            return isDateless
                ? .degraded(
                    "\(InWords.count(status.source.dateless, "fix", "fixes")) without a date",
                    evidence.waypost("status"))
                : .unknown("there is no fix with a date yet")
        }
        let day = text.prefix(10)
        let ahead = (Double(evidence.wallClock) - Double(fix)) / 1000 - age
        let rollovers = (ahead / (rolloverWeeks * weekSeconds)).rounded()
        let isOld = fix < releaseMilliseconds
        if rollovers > 0, abs(ahead - rollovers * rolloverWeeks * weekSeconds) < daySeconds {
            return .broken(
                "it says \(day): \(InWords.whole(rollovers * rolloverWeeks)) weeks behind, by "
                    + (rollovers == 1 ? "a rollover" : "\(InWords.whole(rollovers)) rollovers") + " of the GPS week",
                "rollover = \"repair\"  # in [source]")
        }
        if isOld {
            return .broken("it says \(day), before this waypost was made", "rollover = \"repair\"  # in [source]")
        }
        if evidence.isClockSynchronised == true, abs(ahead) > daySeconds {
            return .degraded("it says \(day), the synchronised host clock another day", evidence.showClock)
        }
        return .ok("it says \(day)")
    }

    static var releaseMilliseconds: Int64 {
        (AgentVersion.released?.daysSince1970).map { Int64($0) * 86_400_000 } ?? 0
    }

    static func rate(_ evidence: Evidence) -> Finding {
        guard let source = evidence.status?.source else { return evidence.noStatus }
        if source.state == "asleep" { return .ok("asleep \(source.reason ?? "")") }
        guard let rate = source.rate, let wanted = rate.wanted else { return .ok("nothing is asked of the receiver") }
        let words = "asked for a fix every \(wanted) ms" + (rate.measured.map { ", gives one every \($0) ms" } ?? "")
        guard let honoured = rate.honoured else { return .unknown(words, evidence.waypost("status --json")) }
        return honoured ? .ok(words) : .degraded(words, "profile = \"none\"  # in [receiver], or that of the receiver")
    }
}

extension Evidence {
    fileprivate var sourceLog: String { log("-n 20 -x") }

    /// A line for the configuration that finds the speed, where that is not done already.
    fileprivate var tryAuto: String {
        guard case .serial(let settings)? = config?.source, case .fixed = settings.speed else { return sourceLog }
        return "baud = \"auto\"  # in [source]"
    }
}
