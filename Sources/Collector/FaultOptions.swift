import ArgumentParser

struct FaultOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Answer with this status and store nothing.", valueName: "status"))
    var answer: Int?

    @Option(help: ArgumentHelp("Value of the Retry-After header of --answer.", valueName: "value"))
    var retryAfter: String?

    @Option(help: ArgumentHelp("Body of --answer.", valueName: "text"))
    var answerBody: String?

    @Flag(help: "Take the request and never answer.")
    var hang = false

    @Flag(help: "Take the request and cut the connection without an answer.")
    var close = false

    @Flag(help: "Store the batch, then cut the connection without an answer.")
    var closeAfterStore = false

    @Option(help: ArgumentHelp("Only this many of the first batches.", valueName: "count"))
    var first: Int?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Only for this time after the start: 250ms, 10s, 2m.", valueName: "duration"))
    var period: String?

    @Option(help: ArgumentHelp("Only every so manieth batch.", valueName: "count"))
    var every: Int?

    @Option(help: ArgumentHelp("Only with this probability, 0 to 1.", valueName: "p"))
    var probability: Double?

    @Option(help: ArgumentHelp("Start of the random sequence of --probability.", valueName: "number"))
    var seed: UInt64 = 1

    @Option(help: ArgumentHelp("Only bodies above this many bytes on the wire.", valueName: "count"))
    var aboveBytes: Int?

    @Option(
        name: .customLong("with-seq"),
        help: ArgumentHelp("Only batches with this seq; may be repeated.", valueName: "seq"))
    var seqs: [Int64] = []

    /// Nil when nothing is wanted.
    func plan() throws -> FaultPlan? {
        var chosen: [FaultPlan.Fault] = []
        if let answer {
            guard (200...599).contains(answer) else { throw ValidationError("--answer: a status is 200 to 599") }
            chosen.append(.answer(status: answer, retryAfter: retryAfter, body: answerBody ?? ""))
        } else if retryAfter != nil || answerBody != nil {
            throw ValidationError("--retry-after and --answer-body belong to --answer")
        }
        if hang { chosen.append(.hang) }
        if close { chosen.append(.close) }
        if closeAfterStore { chosen.append(.closeAfterStore) }
        if chosen.count > 1 { throw ValidationError("choose one of --answer, --hang, --close, --close-after-store") }
        let isNarrowed =
            first != nil || period != nil || every != nil || probability != nil || aboveBytes != nil || !seqs.isEmpty
        guard let fault = chosen.first else {
            if isNarrowed {
                throw ValidationError("a condition needs --answer, --hang, --close or --close-after-store")
            }
            return nil
        }
        if let every, every < 1 { throw ValidationError("--every: must be at least 1") }
        if let probability, !(0...1).contains(probability) { throw ValidationError("--probability: must be 0 to 1") }
        var plan = FaultPlan(fault, seed: seed)
        plan.first = first
        plan.period = try period.map(Self.duration)
        plan.every = every
        plan.probability = probability
        plan.aboveBytes = aboveBytes
        plan.seqs = Set(seqs)
        return plan
    }

    private static func duration(_ text: String) throws -> Duration {
        let number = text.prefix { $0.isASCII && $0.isNumber }
        let units = ["ms": Duration.milliseconds(1), "s": .seconds(1), "m": .seconds(60), "h": .seconds(3600)]
        guard let count = Int32(number), let unit = units[String(text.dropFirst(number.count))] else {
            throw ValidationError("--for: '\(text)' is no duration like 250ms, 10s or 2m")
        }
        return unit * Int(count)
    }
}
