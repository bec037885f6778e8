import TestSupport
import Testing
import WaypostCore

@testable import Remote

@Suite("The trial of settings from afar") struct SettingsTrialTests {
    private static let policy = RemotePolicy(device: "van-7", allow: ["sampling"])
    private var trial = SettingsTrial()

    private func offered(_ version: Int64, at now: Double, time: UTCTime? = nil) -> SettingsTrial.Offer {
        trial.offered(.version(version), policy: Self.policy, at: seconds(now), time: time.map { $0...$0 })
    }

    private mutating func judged(
        _ document: DesiredDocument, _ judgement: SettingsTrial.Judgement = .accepted([], clamped: []),
        at now: Double = 0
    ) -> [SettingsTrial.Action] {
        trial.judged(document, judgement, way: "main", at: seconds(now), time: nil)
    }

    private mutating func receive(_ number: Int64, at now: Double) -> [SettingsTrial.Action] {
        let document = DesiredDocument.version(number)
        guard offered(number, at: now) == .judge else { return [] }
        defer { trial.putInForce(attempts: Int(now)) }
        return judged(document, .accepted(document.settings, clamped: []), at: now)
    }

    private func version(_ version: Int64) -> RemoteVersion {
        RemoteVersion(version: version, settings: [RemoteSetting("sampling.bound", .int(version))], way: "main")
    }

    private mutating func confirm(_ number: Int64, at now: Double) {
        _ = receive(number, at: now)
        _ = trial.batchAccepted(by: "main", attempt: Int(now) + 1)
        #expect(trial.state == .applied(version(number)))
    }

    @Test mutating func isConfirmedByABatchOverItsWay() {
        #expect(receive(17, at: 100) == [.apply(version(17)), .applied(version(17)), .report])
        // What was sent before, at 99 and 100, says nothing about it.
        let tellsNothing = [
            trial.batchAccepted(by: "other", attempt: 101), trial.batchAccepted(by: "main", attempt: 99),
            trial.batchAccepted(by: "main", attempt: 100),
        ]
        #expect(tellsNothing == [[], [], []])
        #expect(trial.batchAccepted(by: "main", attempt: 101) == [.report])
        #expect(trial.state == .applied(version(17)) && trial.nextDeadline == nil)
    }

    /// A worn card takes seconds, in which batches go out with the former settings.
    @Test mutating func isNotConfirmedBeforeItIsInForce() {
        _ = judged(.version(17), at: 100)
        #expect(trial.batchAccepted(by: "main", attempt: 101) == [])
        trial.putInForce(attempts: 103)
        #expect(trial.batchAccepted(by: "main", attempt: 102) == [])
        #expect(trial.batchAccepted(by: "main", attempt: 104) == [.report])
    }

    @Test mutating func isTakenBackWhenTheServerCannotBeReached() {
        confirm(16, at: 0)
        _ = receive(17, at: 100)
        #expect(trial.nextDeadline == nil, "no attempt has failed")
        trial.attemptFailed(at: seconds(200))
        #expect(trial.nextDeadline == seconds(2000))
        #expect(trial.deadlineReached(at: seconds(1999)) == [])
        let reason = "no batch was accepted within its trial"
        #expect(trial.deadlineReached(at: seconds(2000)) == back(17, to: 16, reason))
        #expect(trial.state == .applied(version(16)) && offered(17, at: 9000) == .known)
    }

    private func back(_ number: Int64, to former: Int64, _ reason: String) -> [SettingsTrial.Action] {
        let (gone, former) = (version(number), version(former))
        return [.apply(former), .reverted(gone, to: former, reason: reason), .report]
    }

    @Test mutating func survivesANightWithoutNetwork() {
        _ = receive(17, at: 0)
        trial.attemptFailed(at: seconds(100))
        trial.routeChanged(exists: false, at: seconds(160))
        trial.attemptFailed(at: seconds(10_000))
        #expect(trial.nextDeadline == nil && trial.trial?.rest(at: seconds(40_000)) == .seconds(1740))
        trial.routeChanged(exists: true, at: seconds(40_000))
        #expect(trial.nextDeadline == seconds(41_740))
        #expect(trial.batchAccepted(by: "main", attempt: 40_001) == [.report])
    }

    @Test mutating func endsAtTheSecondStart() {
        confirm(16, at: 0)
        _ = receive(17, at: 100)
        #expect(trial.started(at: seconds(200)) == [.report] && trial.inForce == version(17))
        #expect(trial.started(at: seconds(300)) == back(17, to: 16, "the daemon started twice within its trial"))
        #expect(trial.started(at: seconds(400)) == [.report] && trial.inForce == version(16))
    }

    @Test mutating func returnsToWhatHadContactLast() {
        confirm(16, at: 0)
        _ = receive(17, at: 100)
        _ = receive(18, at: 200)
        #expect(trial.trial?.former == version(16), "17 never had contact")
    }

    /// Nor does the mistake use up versions: what is lower may come after it.
    @Test mutating func rejectsWhatTheConfigurationRefuses() {
        confirm(16, at: 0)
        let problems = [RemoteProblem("sampling.bound", "found -1, expected 0 or more")]
        let wrong = DesiredDocument.versionMax
        #expect(
            judged(.version(wrong), .rejected(problems), at: 100) == [.rejected(version: wrong, problems), .report])
        #expect(trial.inForce == version(16))
        #expect(offered(wrong, at: 900) == .known && offered(17, at: 900) == .judge)
    }

    @Test mutating func isForThisDeviceAndNewer() {
        confirm(16, at: 0)
        var other = DesiredDocument.version(99)
        other.device = "van-8"
        let refused = trial.offered(other, policy: Self.policy, at: seconds(100), time: nil)
        #expect(refused == .refused(.init("device", "that of another device")))
        #expect(offered(15, at: 100) == .refused(.init("version", "not above 16, the highest that was accepted")))
        #expect(offered(17, at: 100) == .judge)
    }

    /// By a clock that may be wrong, a document that was kept back would be in time.
    @Test func expiresByATrustedTimeAlone() {
        var document = DesiredDocument.version(1)
        document.expires = utc(30)
        let times = [utc(0)...utc(29), utc(0)...utc(30), utc(3e9)...utc(3e9), nil]
        let offers = times.map {
            trial.offered(document, policy: Self.policy, at: .zero, time: $0)
        }
        let expired = SettingsTrial.Offer.refused(.init("expires", "it has expired"))
        let unknown = SettingsTrial.Offer.undecided(.init("expires", "unknown until the time is trusted"))
        #expect(offers == [.judge, expired, expired, unknown])
    }

    @Test mutating func changesOnceAMinuteAndTwentyTimesADay() {
        for number in 0..<20 { confirm(Int64(number + 1), at: Double(number) * 60) }
        let offers = [1199.0, 43_200, 86_400].map { offered(21, at: $0) }
        #expect(offers == [.postponed(.seconds(1)), .postponed(.seconds(43_200)), .judge])
    }

    @Test mutating func aPersonWins() {
        confirm(16, at: 0)
        let former = version(16)
        #expect(trial.cleared() == [.apply(nil), .reverted(former, to: nil, reason: "cleared by a person"), .report])
        #expect(trial.state == .none && trial.cleared() == [])
        #expect(offered(16, at: 100) == .known)
    }

    /// What a start does with the stored bytes.
    private static func restart(_ trial: inout SettingsTrial, at now: Double, then start: Double = 0) {
        var memory = RemoteMemory()
        memory.settings = trial
        trial = RemoteMemory(memory.bytes(at: seconds(now)), at: seconds(start))!.settings
    }

    @Test mutating func anAttemptFromBeforeItIsInForceStartsNoClock() {
        _ = judged(.version(17))
        trial.attemptFailed(3, at: seconds(1))
        trial.putInForce(attempts: 4)
        trial.attemptFailed(4, at: seconds(2))
        #expect(trial.nextDeadline == nil)
        trial.attemptFailed(5, at: seconds(3))
        #expect(trial.nextDeadline == seconds(1803))
    }

    /// A batch may have been accepted before the daemon died of them.
    @Test mutating func endsWhenTheDaemonDiesAtEachStart() {
        func dies(_ trial: inout SettingsTrial) -> [SettingsTrial.Action] {
            Self.restart(&trial, at: 30)
            return trial.started(at: seconds(10))
        }
        confirm(16, at: 0)
        for _ in 1...4 { #expect(dies(&trial) == [.report]) }
        // One that has run for a minute is well.
        #expect(trial.nextDeadline == seconds(70))
        #expect(trial.deadlineReached(at: seconds(70)) == [.store])
        for _ in 1...4 { #expect(dies(&trial) == [.report]) }
        #expect(dies(&trial).first == .apply(nil))
        #expect(trial.inForce == nil && trial.refusal?.version == 16 && trial.nextDeadline == nil)
    }

    @Test mutating func aPersonMayForgetWhatWasSeen() {
        confirm(Int64(DesiredDocument.versionMax), at: 0)
        #expect(trial.forgotten(acceptsOlder: true).first == .apply(nil))
        #expect(trial.inForce == nil && trial.seen == 0 && trial.refusal == nil)
        #expect(offered(1, at: 100) == .judge)
        #expect(trial.forgotten(acceptsOlder: true) == [.report])
    }

    /// What was signed once could be sent again by whoever kept it.
    @Test mutating func whatWasAcceptedOutlivesThatAPersonForgets() {
        confirm(16, at: 0)
        _ = judged(.version(20), .rejected([.init("a", "b")]), at: 100)
        #expect(trial.forgotten(acceptsOlder: false).first == .apply(nil))
        #expect(trial.inForce == nil && trial.refusal == nil)
        Self.restart(&trial, at: 200)
        let offers = [15, 16, 17, 20].map { offered($0, at: 900) }
        let refused = SettingsTrial.Offer.refused(.init("version", "not above 16, the highest that was accepted"))
        #expect(offers == [refused, .known, .judge, .judge])
    }

    @Test mutating func countsOverRestarts() {
        confirm(16, at: 5000)
        Self.restart(&trial, at: 5010)
        #expect(offered(17, at: 0) == .postponed(.seconds(50)))
        _ = receive(17, at: 100)
        trial.attemptFailed(at: seconds(100))
        Self.restart(&trial, at: 700)
        #expect(trial.trial?.rest(at: .zero) == .seconds(1200) && trial.trial?.former == version(16))
    }

    @Test mutating func trustsTheDateWhereThereIsOne() {
        _ = trial.judged(.version(1), .accepted([], clamped: []), way: "main", at: .zero, time: utc(0))
        Self.restart(&trial, at: 1)
        let offers = [utc(3600), utc(30), nil].map { offered(2, at: 0, time: $0) }
        #expect(offers == [.judge, .postponed(.seconds(59)), .postponed(.seconds(59))])
    }

    @Test mutating func damagedBytesAreNothing() {
        _ = judged(.version(17), .accepted([RemoteSetting("a.b", .string("c"))], clamped: []))
        var memory = RemoteMemory()
        memory.settings = trial
        let bytes = memory.bytes(at: .zero)
        #expect(RemoteMemory(bytes, at: .zero) == memory)
        let accepted = bytes.indices.filter { index in
            var damaged = bytes
            damaged[index] ^= 0x41
            return RemoteMemory(damaged, at: .zero) != nil || RemoteMemory(Array(bytes[..<index]), at: .zero) != nil
        }
        #expect(accepted == [], "changed at or cut before one of these bytes")
    }

    /// No order of documents, attempts, routes and restarts brings a version back that was taken back, leaves the device
    /// on one without contact while its server fails, or changes settings too often.
    @Test(arguments: testSeeds(0..<100))
    func anyOrderOfEvents(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = Model()
        for _ in 0..<400 { model.step(&random) }
        #expect(model.faults == [], "seed \(seed)")
    }

    private struct Model {
        var trial = SettingsTrial()
        var now = 0.0
        /// Over all runs.
        var elapsed = 0.0
        var hadContact: Set<Int64> = []
        var takenBack: Set<Int64> = []
        var changes: [Double] = []
        var faults: [String] = []
        var lastVersion: Int64 = 0
        var startsInTrial = 0
        var routes = true
        /// When this run began.
        var runsSince = 0.0
        /// Of the trial; nil = not yet.
        var inForceAt: Double?

        mutating func step(_ random: inout SeededGenerator) {
            let pause = Double.random(in: 0...1, using: &random) < 0.1 ? 20_000.0 : 300.0
            advance(by: Double.random(in: 0...pause, using: &random))
            if trial.trial != nil, inForceAt == nil, Bool.random(using: &random) {
                trial.putInForce(attempts: Int((now - runsSince) * 1000))
                inForceAt = now
            }
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2: receive(Int64.random(in: max(1, lastVersion - 3)...lastVersion + 3, using: &random), &random)
            case 3, 4:
                let sent = now - Double.random(in: 0...60, using: &random)
                let version = trial.trial?.version.version
                perform(trial.batchAccepted(by: "main", attempt: Int((sent - runsSince) * 1000)))
                guard let version, trial.trial == nil else { break }
                hadContact.insert(version)
                if inForceAt.map({ sent < $0 }) ?? true { faults.append("confirmed before it was in force") }
            case 5, 6: trial.attemptFailed(at: seconds(now))
            case 7:
                routes.toggle()
                trial.routeChanged(exists: routes, at: seconds(now))
            case 8: restart(&random)
            default: if Int.random(in: 0..<20, using: &random) == 0 { perform(trial.cleared()) }
            }
            check()
        }

        private mutating func advance(by pause: Double) {
            let end = now + pause
            while let deadline = trial.nextDeadline, deadline <= seconds(end) {
                let before = trial
                perform(trial.deadlineReached(at: deadline))
                if trial == before { return faults.append("a deadline that does nothing") }
            }
            now = end
            elapsed += pause
        }

        private mutating func receive(_ version: Int64, _ random: inout SeededGenerator) {
            let document = DesiredDocument.version(version, within: Int.random(in: 60...4000, using: &random))
            let offer = trial.offered(document, policy: SettingsTrialTests.policy, at: seconds(now), time: nil)
            guard offer == .judge else { return }
            lastVersion = max(lastVersion, version)
            let isGood = Int.random(in: 0..<4, using: &random) > 0
            let judgement: SettingsTrial.Judgement =
                isGood ? .accepted(document.settings, clamped: []) : .rejected([.init("a", "b")])
            if isGood, takenBack.contains(version) { faults.append("\(version) is tried again") }
            perform(trial.judged(document, judgement, way: "main", at: seconds(now), time: nil))
            guard isGood else { return }
            inForceAt = nil
            if let last = changes.last, elapsed - last < 59.99 { faults.append("two changes within a minute") }
            if changes.count >= 20, elapsed - changes[changes.count - 20] < 86_399 {
                faults.append("21 changes within a day")
            }
            changes.append(elapsed)
            startsInTrial = 0
        }

        private mutating func restart(_ random: inout SeededGenerator) {
            let start = Double.random(in: 0...10, using: &random)
            SettingsTrialTests.restart(&trial, at: now, then: start)
            now = start
            runsSince = now
            if trial.trial != nil { startsInTrial += 1 }
            perform(trial.started(at: seconds(now)))
            inForceAt = now
            trial.routeChanged(exists: routes, at: seconds(now))
            if startsInTrial >= 2, trial.trial != nil { faults.append("a trial over two starts") }
            if trial.trial == nil { startsInTrial = 0 }
        }

        private mutating func perform(_ actions: [SettingsTrial.Action]) {
            for case .reverted(let version, let former, _) in actions {
                takenBack.insert(version.version)
                if let former, !hadContact.contains(former.version) { faults.append("back to one without contact") }
            }
        }

        private mutating func check() {
            if case .applied(let version) = trial.state, !hadContact.contains(version.version) {
                faults.append("\(version.version) is in force for good without contact")
            }
            if let former = trial.trial?.former, !hadContact.contains(former.version) {
                faults.append("\(former.version) would return without contact")
            }
            if let inForce = trial.inForce, takenBack.contains(inForce.version) {
                faults.append("\(inForce.version) is back")
            }
        }
    }
}
