import JSON
import Positioning
import TestSupport
import Testing

@testable import Remote

@Suite("The trial of settings from afar") struct SettingsTrialTests {
    private static let policy = RemotePolicy(device: "van-7", allow: ["sampling"])
    private var trial = SettingsTrial()

    private mutating func receive(_ document: DesiredDocument, at now: Double) -> [SettingsTrial.Action] {
        let offer = trial.offered(document, policy: Self.policy, at: seconds(now), time: nil)
        guard offer == .judge else { return [] }
        defer { trial.putInForce(attempts: Int(now)) }
        return trial.judged(
            document, .accepted(document.settings, clamped: []), way: "main", at: seconds(now), time: nil)
    }

    private func version(_ version: Int64) -> RemoteVersion {
        RemoteVersion(version: version, settings: [RemoteSetting("sampling.bound", .int(version))], way: "main")
    }

    private mutating func confirm(_ version: Int64, at now: Double) {
        _ = receive(.version(version), at: now)
        _ = trial.batchAccepted(by: "main", attempt: Int(now) + 1)
        #expect(trial.state == .applied(self.version(version)))
    }

    @Test mutating func isConfirmedByABatchOverItsWay() {
        #expect(receive(.version(17), at: 100) == [.apply(version(17)), .applied(version(17)), .report])
        #expect(trial.batchAccepted(by: "other", attempt: 101) == [])
        #expect(
            trial.batchAccepted(by: "main", attempt: 99) == [],
            "what was sent before says nothing about it")
        #expect(trial.batchAccepted(by: "main", attempt: 100) == [])
        #expect(trial.batchAccepted(by: "main", attempt: 101) == [.report])
        #expect(trial.state == .applied(version(17)))
        #expect(trial.nextDeadline == nil)
    }

    /// A worn card takes seconds, in which batches go out with the former settings.
    @Test mutating func isNotConfirmedBeforeItIsInForce() {
        _ = trial.judged(.version(17), .accepted([], clamped: []), way: "main", at: seconds(100), time: nil)
        #expect(trial.batchAccepted(by: "main", attempt: 101) == [])
        trial.putInForce(attempts: 103)
        #expect(trial.batchAccepted(by: "main", attempt: 102) == [])
        #expect(trial.batchAccepted(by: "main", attempt: 104) == [.report])
    }

    @Test mutating func isTakenBackWhenTheServerCannotBeReached() {
        confirm(16, at: 0)
        _ = receive(.version(17), at: 100)
        #expect(trial.nextDeadline == nil, "no attempt has failed")
        trial.attemptFailed(at: seconds(200))
        #expect(trial.nextDeadline == seconds(2000))
        #expect(trial.deadlineReached(at: seconds(1999)) == [])
        #expect(
            trial.deadlineReached(at: seconds(2000)) == [
                .apply(version(16)),
                .reverted(version(17), to: version(16), reason: "no batch was accepted within its trial"), .report,
            ])
        #expect(trial.state == .applied(version(16)))
        #expect(trial.offered(.version(17), policy: Self.policy, at: seconds(9000), time: nil) == .known)
    }

    @Test mutating func survivesANightWithoutNetwork() {
        _ = receive(.version(17), at: 0)
        trial.attemptFailed(at: seconds(100))
        trial.routeChanged(exists: false, at: seconds(160))
        trial.attemptFailed(at: seconds(10_000))
        #expect(trial.nextDeadline == nil)
        #expect(trial.trial?.rest(at: seconds(40_000)) == .seconds(1740))
        trial.routeChanged(exists: true, at: seconds(40_000))
        #expect(trial.nextDeadline == seconds(41_740))
        #expect(trial.batchAccepted(by: "main", attempt: 40_001) == [.report])
    }

    @Test mutating func endsAtTheSecondStart() {
        confirm(16, at: 0)
        _ = receive(.version(17), at: 100)
        #expect(trial.started(at: seconds(200)) == [.report])
        #expect(trial.inForce == version(17))
        #expect(
            trial.started(at: seconds(300)) == [
                .apply(version(16)),
                .reverted(version(17), to: version(16), reason: "the daemon started twice within its trial"), .report,
            ])
        #expect(trial.started(at: seconds(400)) == [.report])
        #expect(trial.inForce == version(16))
    }

    @Test mutating func returnsToWhatHadContactLast() {
        confirm(16, at: 0)
        _ = receive(.version(17), at: 100)
        _ = receive(.version(18), at: 200)
        #expect(trial.trial?.former == version(16), "17 never had contact")
    }

    @Test mutating func rejectsWhatTheConfigurationRefuses() {
        confirm(16, at: 0)
        let problems = [RemoteProblem("sampling.bound", "found -1, expected 0 or more")]
        let actions = trial.judged(
            .version(17), .rejected(problems), way: "main", at: seconds(100), time: nil)
        #expect(actions == [.rejected(version: 17, problems), .report])
        #expect(trial.inForce == version(16))
        #expect(trial.offered(.version(17), policy: Self.policy, at: seconds(900), time: nil) == .known)
    }

    @Test mutating func isForThisDeviceAndNewer() {
        confirm(16, at: 0)
        var other = DesiredDocument.version(99)
        other.device = "van-8"
        #expect(
            trial.offered(other, policy: Self.policy, at: seconds(100), time: nil)
                == .refused(.init("device", "that of another device")))
        #expect(
            trial.offered(.version(15), policy: Self.policy, at: seconds(100), time: nil)
                == .refused(.init("version", "not above 16")))
        #expect(trial.offered(.version(17), policy: Self.policy, at: seconds(100), time: nil) == .judge)
    }

    @Test mutating func changesOnceAMinuteAndTwentyTimesADay() {
        for number in 0..<20 { confirm(Int64(number + 1), at: Double(number) * 60) }
        #expect(
            trial.offered(.version(21), policy: Self.policy, at: seconds(19 * 60 + 59), time: nil)
                == .postponed(.seconds(1)))
        let atNoon = trial.offered(.version(21), policy: Self.policy, at: seconds(43_200), time: nil)
        #expect(atNoon == .postponed(.seconds(43_200)))
        #expect(trial.offered(.version(21), policy: Self.policy, at: seconds(86_400), time: nil) == .judge)
    }

    @Test mutating func aPersonWins() {
        confirm(16, at: 0)
        #expect(
            trial.cleared() == [
                .apply(nil), .reverted(version(16), to: nil, reason: "cleared by a person"), .report,
            ])
        #expect(trial.state == .none)
        #expect(trial.cleared() == [])
        #expect(trial.offered(.version(16), policy: Self.policy, at: seconds(100), time: nil) == .known)
    }

    /// What a start does with the stored bytes.
    private mutating func restart(at now: Double) {
        var memory = RemoteMemory()
        memory.settings = trial
        trial = RemoteMemory(memory.bytes(at: seconds(now)), at: .zero)!.settings
    }

    @Test mutating func anAttemptFromBeforeItIsInForceStartsNoClock() {
        _ = trial.judged(.version(17), .accepted([], clamped: []), way: "main", at: .zero, time: nil)
        trial.attemptFailed(3, at: seconds(1))
        trial.putInForce(attempts: 4)
        trial.attemptFailed(4, at: seconds(2))
        #expect(trial.nextDeadline == nil)
        trial.attemptFailed(5, at: seconds(3))
        #expect(trial.nextDeadline == seconds(1803))
    }

    @Test mutating func aMistakeUsesUpNoVersions() {
        let wrong = DesiredDocument.version(DesiredDocument.versionMax)
        _ = trial.judged(wrong, .rejected([]), way: "main", at: .zero, time: nil)
        #expect(trial.offered(wrong, policy: Self.policy, at: seconds(100), time: nil) == .known)
        #expect(trial.offered(.version(17), policy: Self.policy, at: seconds(100), time: nil) == .judge)
    }

    /// A batch may have been accepted before the daemon died of them.
    @Test mutating func endsWhenTheDaemonDiesAtEachStart() {
        confirm(16, at: 0)
        for _ in 1...4 {
            restart(at: 30)
            #expect(trial.started(at: seconds(10)) == [.report])
        }
        // One that has run for a minute is well.
        #expect(trial.nextDeadline == seconds(70))
        #expect(trial.deadlineReached(at: seconds(70)) == [.store])
        for _ in 1...4 {
            restart(at: 30)
            #expect(trial.started(at: seconds(10)) == [.report])
        }
        restart(at: 30)
        #expect(trial.started(at: seconds(10)).first == .apply(nil))
        #expect(trial.inForce == nil && trial.refusal?.version == 16 && trial.nextDeadline == nil)
    }

    @Test mutating func aPersonMayForgetWhatWasSeen() {
        confirm(Int64(DesiredDocument.versionMax), at: 0)
        #expect(trial.forgotten().first == .apply(nil))
        #expect(trial.inForce == nil && trial.seen == 0 && trial.refusal == nil)
        #expect(trial.offered(.version(1), policy: Self.policy, at: seconds(100), time: nil) == .judge)
        #expect(trial.forgotten() == [.report])
    }

    @Test mutating func countsOverRestarts() {
        confirm(16, at: 5000)
        restart(at: 5010)
        #expect(
            trial.offered(.version(17), policy: Self.policy, at: .zero, time: nil) == .postponed(.seconds(50)))
        _ = receive(.version(17), at: 100)
        trial.attemptFailed(at: seconds(100))
        restart(at: 700)
        #expect(trial.trial?.rest(at: .zero) == .seconds(1200))
        #expect(trial.trial?.former == version(16))
    }

    @Test mutating func trustsTheDateWhereThereIsOne() {
        let time = utc(0)
        _ = trial.judged(.version(1), .accepted([], clamped: []), way: "main", at: .zero, time: time)
        restart(at: 1)
        let offer = { [trial] (time: UTCTime?) in
            trial.offered(.version(2), policy: Self.policy, at: .zero, time: time)
        }
        #expect(offer(utc(3600)) == .judge)
        #expect(offer(utc(30)) == .postponed(.seconds(59)))
        #expect(offer(nil) == .postponed(.seconds(59)))
    }

    @Test func damagedBytesAreNothing() {
        var memory = RemoteMemory()
        _ = memory.settings.judged(
            .version(17), .accepted([RemoteSetting("a.b", .string("c"))], clamped: []), way: "main", at: .zero,
            time: nil)
        let bytes = memory.bytes(at: .zero)
        #expect(RemoteMemory(bytes, at: .zero) == memory)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x41
            #expect(RemoteMemory(damaged, at: .zero) == nil, "byte \(index)")
            #expect(RemoteMemory(Array(bytes[..<index]), at: .zero) == nil)
        }
    }

    /// No order of documents, attempts, routes and restarts brings a version back that was taken back, leaves the device
    /// on one without contact while its server fails, or changes settings too often.
    @Test(arguments: testSeeds(0..<200))
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
            changes.append(elapsed)
            startsInTrial = 0
        }

        private mutating func restart(_ random: inout SeededGenerator) {
            var memory = RemoteMemory()
            memory.settings = trial
            let bytes = memory.bytes(at: seconds(now))
            now = Double.random(in: 0...10, using: &random)
            guard let read = RemoteMemory(bytes, at: seconds(now)) else { return faults.append("unreadable") }
            trial = read.settings
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
            for (earlier, later) in zip(changes, changes.dropFirst()) where later - earlier < 59.99 {
                faults.append("two changes within a minute")
            }
            for (earlier, later) in zip(changes, changes.dropFirst(20)) where later - earlier < 86_399 {
                faults.append("21 changes within a day")
            }
            if let inForce = trial.inForce, takenBack.contains(inForce.version) {
                faults.append("\(inForce.version) is back")
            }
        }
    }
}
