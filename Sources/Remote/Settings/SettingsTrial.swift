import WaypostCore

/// Which settings from afar are in force, and when they are taken back.
///
/// A document is on trial until a batch was accepted over the way on which it came. A trial ends the other way round when
/// its clock has run out, which runs only while there is a route and an attempt has failed, or at the second start of the
/// daemon within it. The former settings are then back, and this version is never tried again: only a higher one is.
///
/// What it returns is done in this order: the state is stored, then put in force. A power cut between the two starts
/// the daemon with the new settings and their trial.
package struct SettingsTrial: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// The file alone. Left when a document is accepted.
        case none
        /// Left for `applied` by a batch that was accepted, for another `trial` by a higher version, and for what `former` says
        /// when it is taken back or a person clears it.
        case trial(Trial)
        /// In force for good. Left for `trial` by a higher version, and for `none` by a person, by a file that no longer
        /// allows it, and by a daemon that dies soon after each start with it.
        case applied(RemoteVersion)
    }

    package struct Trial: Hashable, Sendable {
        package var version: RemoteVersion
        /// Had contact, and returns if this one has none; nil = the file alone.
        package var former: RemoteVersion?
        /// What is left of the clock while it stands, and what was left when it began to run.
        package fileprivate(set) var rest: Duration
        /// Since when the clock runs; nil = it stands.
        fileprivate var runsSince: EventTime?
        /// The last attempt of this run to send a batch that began before it was in force, and says nothing about it; nil = it
        /// is not in force yet.
        fileprivate var lastAttemptBefore: Int?
        /// Starts of the daemon since it was accepted.
        fileprivate var starts = 0

        fileprivate var deadline: EventTime? { runsSince.map { $0 + rest } }

        /// - Returns: what is left of its clock.
        package func rest(at now: EventTime) -> Duration {
            guard let runsSince else { return rest }
            return max(.zero, rest - now.duration(since: runsSince))
        }

        fileprivate mutating func stop(at now: EventTime) {
            rest = rest(at: now)
            runsSince = nil
        }
    }

    /// What became of the newest version that was judged and is not in force.
    package struct Refusal: Hashable, Sendable {
        package enum Kind: Int, Sendable {
            case rejected
            case reverted
        }

        package var version: Int64
        package var kind: Kind
        package var problems: [RemoteProblem]
    }

    /// What to do about a document that has arrived.
    package enum Offer: Hashable, Sendable {
        /// Let the configuration judge it, and report that to `judged`.
        case judge
        /// It was judged before.
        case known
        /// It is not for this device, or older than one that was judged: nothing is remembered of it.
        case refused(RemoteProblem)
        /// It may be judged later: nothing is remembered of it.
        case undecided(RemoteProblem)
        /// Too many changes: ask for it again after this long.
        case postponed(Duration)
    }

    package enum Judgement: Hashable, Sendable {
        case accepted([RemoteSetting], clamped: [ClampedSetting])
        case rejected([RemoteProblem])
    }

    /// What to do, in this order; before anything else the state is stored.
    package enum Action: Hashable, Sendable {
        /// Put this over the file; nil = the file alone. The state has it already.
        case apply(RemoteVersion?)
        case applied(RemoteVersion)
        case rejected(version: Int64, [RemoteProblem])
        case reverted(RemoteVersion, to: RemoteVersion?, reason: String)
        /// What the server is shown has changed.
        case report
        /// Nothing but to store the state.
        case store
    }

    /// A daemon that has run for as long does not die of its settings.
    private static let firstMinute = Duration.seconds(60)
    /// Starts in a row, each followed by less than that, after which settings are given up.
    private static let shortRunsMax = 5

    package private(set) var state = State.none
    /// The highest version that was accepted; one that is not above it never is again. One that was rejected does not count: a
    /// mistake must not use up versions.
    package private(set) var seen: Int64 = 0
    package private(set) var refusal: Refusal?
    private var changes = ChangeBudget(limit: 20, window: .seconds(86_400))
    /// Judging reads the configuration: a server that sends one wrong version after the other costs no more than this.
    private var judgements = ChangeBudget(limit: 1, window: .seconds(60))
    private var hasRoute = true
    private var hasFailed = false
    /// Starts of the daemon with settings in force since one of them was followed by a minute.
    private var shortRuns = 0
    /// When the first minute of this run is over; nil = it is, or nothing was in force when it began.
    private var firstMinuteEnds: EventTime?

    package init() {}

    /// What is over the file; nil = nothing.
    package var inForce: RemoteVersion? {
        switch state {
        case .none: nil
        case .trial(let trial): trial.version
        case .applied(let version): version
        }
    }

    /// Another copy knows the highest version that was accepted.
    package mutating func recall(seen version: Int64) { seen = max(seen, version) }

    /// Whether a document of this version would be judged.
    package func wants(_ version: Int64) -> Bool { version > seen && version != rejected }

    private var rejected: Int64? { refusal?.kind == .rejected ? refusal?.version : nil }

    package var trial: Trial? { if case .trial(let trial) = state { trial } else { nil } }

    package var nextDeadline: EventTime? { [trial?.deadline, firstMinuteEnds].compactMap { $0 }.min() }

    /// - Parameter time: between these; nil where the clock is not trusted.
    package func offered(
        _ document: DesiredDocument, policy: RemotePolicy, at now: EventTime, time: ClosedRange<UTCTime>?
    ) -> Offer {
        guard document.device == policy.device else { return .refused(.init("device", "that of another device")) }
        if document.version == seen || document.version == rejected { return .known }
        guard document.version > seen else {
            return .refused(.init("version", "not above \(seen), the highest that was accepted"))
        }
        if let expires = document.expires {
            // By a wrong clock a document that was kept back for years would be in time.
            guard let time else { return .undecided(.init("expires", "unknown until the time is trusted")) }
            guard time.upperBound < expires else { return .refused(.init("expires", "it has expired")) }
        }
        if let wait = judgements.wait(at: now, time: time?.lowerBound) ?? changes.wait(at: now, time: time?.lowerBound)
        {
            return .postponed(wait)
        }
        return .judge
    }

    /// The configuration has judged a document that was to be judged.
    package mutating func judged(
        _ document: DesiredDocument, _ judgement: Judgement, way: String, at now: EventTime, time: UTCTime?
    ) -> [Action] {
        guard document.version > seen else { return [] }
        judgements.use(at: now, time: time)
        switch judgement {
        case .rejected(let problems):
            let problems = Array(problems.prefix(RemoteProblem.kept))
            refusal = Refusal(version: document.version, kind: .rejected, problems: problems)
            return [.rejected(version: document.version, problems), .report]
        case .accepted(let settings, let clamped):
            seen = document.version
            changes.use(at: now, time: time)
            let version = RemoteVersion(version: seen, settings: settings, clamped: clamped, way: way)
            let rest = document.confirmWithin
            state = .trial(Trial(version: version, former: proven, rest: rest))
            (refusal, hasFailed) = (nil, false)
            return [.apply(version), .applied(version), .report]
        }
    }

    /// What `apply` asked for has been done.
    /// - Parameter attempts: to send a batch that have begun in this run.
    package mutating func putInForce(attempts: Int) {
        guard case .trial(var trial) = state, trial.lastAttemptBefore == nil else { return }
        trial.lastAttemptBefore = attempts
        state = .trial(trial)
    }

    /// What had contact last.
    private var proven: RemoteVersion? {
        switch state {
        case .none: nil
        case .trial(let trial): trial.former
        case .applied(let version): version
        }
    }

    /// The daemon has started, and the state was read.
    package mutating func started(at now: EventTime) -> [Action] {
        guard let version = inForce else { return refusal == nil ? [] : [.report] }
        shortRuns += 1
        firstMinuteEnds = now + Self.firstMinute
        if case .trial(var trial) = state {
            trial.starts += 1
            trial.lastAttemptBefore = 0
            state = .trial(trial)
            return trial.starts < 2 ? [.report] : revert(trial, because: "the daemon started twice within its trial")
        }
        guard shortRuns >= Self.shortRunsMax else { return [.report] }
        return drop(version, because: "the daemon started \(shortRuns) times, and never ran for a minute")
    }

    /// Whether there is a way to the network over which the server might be reached.
    package mutating func routeChanged(exists: Bool, at now: EventTime) {
        hasRoute = exists
        adjustClock(at: now)
    }

    /// A batch, or a question for settings, had no answer or a wrong one.
    /// - Parameter attempt: which of this run it was, from 1, to send a batch; nil = a question.
    package mutating func attemptFailed(_ attempt: Int? = nil, at now: EventTime) {
        // Of one that began before the trial was in force.
        if let attempt, let trial, attempt <= trial.lastAttemptBefore ?? .max { return }
        hasFailed = true
        adjustClock(at: now)
    }

    /// A batch was accepted.
    /// - Parameter attempt: which of this run it was, from 1.
    package mutating func batchAccepted(by way: String, attempt: Int) -> [Action] {
        guard case .trial(let trial) = state, trial.version.way == way, let before = trial.lastAttemptBefore,
            attempt > before
        else { return [] }
        state = .applied(trial.version)
        return [.report]
    }

    package mutating func deadlineReached(at now: EventTime) -> [Action] {
        var actions: [Action] = []
        if let ends = firstMinuteEnds, ends <= now {
            (firstMinuteEnds, shortRuns) = (nil, 0)
            actions = [.store]
        }
        guard case .trial(let trial) = state, let deadline = trial.deadline, deadline <= now else { return actions }
        return revert(trial, because: "no batch was accepted within its trial")
    }

    /// The settings in force cannot be put over the file any more: a person has changed the file.
    package mutating func refusedByFile(_ problems: [RemoteProblem]) -> [Action] {
        guard let version = inForce else { return [] }
        state = .none
        refusal = Refusal(version: version.version, kind: .reverted, problems: problems)
        let reason = problems.first.map { "\($0.path): \($0.reason)" } ?? "the file refuses it"
        return [.apply(nil), .reverted(version, to: nil, reason: reason), .report]
    }

    /// The disk has refused a version on trial, which is not in force yet.
    /// - Parameter version: nil = whatever is on trial.
    package mutating func notStored(_ version: RemoteVersion? = nil) -> [Action] {
        guard case .trial(let trial) = state, version == nil || version == trial.version else { return [] }
        return revert(trial, because: "it could not be stored")
    }

    /// A person wants the file alone. What was judged is not tried again.
    package mutating func cleared() -> [Action] { inForce.map { drop($0, because: "cleared by a person") } ?? [] }

    /// The file alone is in force.
    private mutating func drop(_ version: RemoteVersion, because reason: String) -> [Action] {
        (state, shortRuns, firstMinuteEnds) = (.none, 0, nil)
        refusal = Refusal(version: version.version, kind: .reverted, problems: [RemoteProblem("", reason)])
        return [.apply(nil), .reverted(version, to: nil, reason: reason), .report]
    }

    /// A person wants the file alone, and nothing remembered of what was refused.
    /// - Parameter acceptsOlder: also versions that are not above the highest that was accepted. Where documents are signed,
    ///   this brings back whatever the owner has signed before.
    package mutating func forgotten(acceptsOlder: Bool) -> [Action] {
        let actions = cleared().filter { $0 != .report }
        refusal = nil
        if acceptsOlder { seen = 0 }
        return actions + [.report]
    }

    private mutating func revert(_ trial: Trial, because reason: String) -> [Action] {
        state = trial.former.map(State.applied) ?? .none
        shortRuns = 0
        let problem = RemoteProblem("", reason)
        refusal = Refusal(version: trial.version.version, kind: .reverted, problems: [problem])
        return [.apply(trial.former), .reverted(trial.version, to: trial.former, reason: reason), .report]
    }

    private mutating func adjustClock(at now: EventTime) {
        guard case .trial(var trial) = state else { return }
        let runs = hasRoute && hasFailed
        if runs, trial.runsSince == nil { trial.runsSince = now }
        if !runs, trial.runsSince != nil { trial.stop(at: now) }
        state = .trial(trial)
    }
}

extension SettingsTrial {
    /// As it is stored.
    struct Stored: StateCoded {
        static var blank: Stored { Stored() }
        private var kind = 0
        private var version: RemoteVersion?
        private var former: RemoteVersion?
        /// Milliseconds.
        private var rest = 0
        private var starts = 0
        private var seen: Int64 = 0
        private var refused: Int64 = 0
        private var refusalKind = 0
        private var problems: [RemoteProblem] = []
        private var changes = ChangeBudget.Stored.blank
        private var judgements = ChangeBudget.Stored.blank
        private var shortRuns = 0

        private init() {}

        init(_ trial: SettingsTrial, at now: EventTime) {
            switch trial.state {
            case .none: kind = 0
            case .trial(let trial):
                kind = 1
                (version, former, starts) = (trial.version, trial.former, trial.starts)
                rest = Int(trial.rest(at: now).milliseconds)
            case .applied(let version):
                kind = 2
                self.version = version
            }
            seen = trial.seen
            refused = trial.refusal?.version ?? 0
            refusalKind = trial.refusal?.kind.rawValue ?? 0
            problems = trial.refusal?.problems ?? []
            changes = trial.changes.stored(at: now)
            judgements = trial.judgements.stored(at: now)
            shortRuns = trial.shortRuns
        }

        mutating func code(_ coder: inout StateCoder) {
            coder.code(&kind)
            coder.code(&version)
            coder.code(&former)
            coder.code(&rest)
            coder.code(&starts)
            coder.code(&seen)
            coder.code(&refused)
            coder.code(&refusalKind)
            coder.code(&problems)
            coder.code(&changes)
            coder.code(&judgements)
            coder.code(&shortRuns)
        }

        func trial(at now: EventTime) -> SettingsTrial {
            var trial = SettingsTrial()
            switch (kind, version) {
            case (1, let version?):
                trial.state = .trial(
                    Trial(
                        version: version, former: former, rest: .milliseconds(max(0, rest)), starts: max(0, starts)))
            case (2, let version?): trial.state = .applied(version)
            default: trial.state = .none
            }
            trial.seen = max(seen, version?.version ?? 0)
            if let kind = Refusal.Kind(rawValue: refusalKind), refused > 0 {
                trial.refusal = Refusal(version: refused, kind: kind, problems: problems)
            }
            trial.changes.restore(changes, at: now)
            trial.judgements.restore(judgements, at: now)
            trial.shortRuns = max(0, shortRuns)
            return trial
        }
    }
}
