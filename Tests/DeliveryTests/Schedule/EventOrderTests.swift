import Profiles
import Testing
import WaypostCore

/// The schedule under any order of what happens to it.
@Suite struct EventOrderTests {
    @Test(.bug(id: 11), arguments: 1...80)
    func keepsItsWordUnderAnyOrderOfEvents(seed: Int) {
        var world = EventWorld(seed: seed)
        for _ in 0..<1500 where world.breaches.isEmpty {
            happen(&world)
            world.step()
        }
        #expect(world.breaches.isEmpty, "seed \(seed)")
        guard world.breaches.isEmpty else { return }
        drain(&world)
        world.writeSettlements()
        #expect(world.breaches.isEmpty, "seed \(seed)")
        #expect(world.waiting.isEmpty && world.batches.isEmpty, "seed \(seed): \(world.schedule.state)")
        #expect(world.schedule.waiting + world.schedule.inFlight == 0, "seed \(seed)")
        let known = world.stored.union(world.quarantined).union(world.dropped)
        #expect(known.isSuperset(of: 1...max(1, world.recorded)), "seed \(seed)")
        #expect(world.refused.isSuperset(of: world.quarantined), "seed \(seed)")
    }

    private func happen(_ world: inout EventWorld) {
        if world.chance(1, of: 40) { world.mood = EventWorld.Mood.allCases.randomElement(using: &world.generator)! }
        switch Int.random(in: 0..<40, using: &world.generator) {
        case 0..<9: world.answer()
        case 9..<17: world.commit(fails: world.chance(1, of: 10))
        case 17..<22: world.record(Int.random(in: 1...6, using: &world.generator))
        case 22..<29: world.pass()
        case 29: world.now = world.now + .seconds(Int.random(in: 60...4000, using: &world.generator))
        case 30: world.answerLate()
        case 31: world.otherCommit()
        case 32: world.schedule.notFormed(-1, at: world.now)
        case 33: world.schedule.flushRequested(at: world.now)
        case 34: world.schedule.linkChanged(at: world.now)
        case 35:
            world.schedule.resumed(at: world.now)
            world.backsOffUntil = world.now
        case 36 where world.chance(1, of: 4): world.schedule.bindRequested()
        case 37 where world.chance(1, of: 2):
            world.abandon()
            world.schedule.credentialsReplaced()
            world.backsOffUntil = max(world.backsOffUntil, .zero)
        case 38 where world.chance(1, of: 4):
            world.commits.append(world.chance(1, of: 4) ? .found : .order(dropping: world.chance(1, of: 3)))
        case 39 where world.chance(1, of: 6): world.restart()
        case 39 where world.chance(1, of: 4): world.dissolve()
        default: break
        }
    }

    /// All is well from now on: what waits goes out within three hours.
    private func drain(_ world: inout EventWorld) {
        world.isHealthy = true
        let end = world.now + .seconds(3 * 3600)
        while world.now < end, world.breaches.isEmpty {
            if world.request == nil, world.commits.isEmpty {
                switch world.schedule.state {
                case .stopped, .taken, .rebind: world.schedule.resumed(at: world.now)
                case .active, .paused: break
                }
                guard case .wait(let until?) = world.schedule.next(at: world.now) else {
                    if case .wait = world.schedule.next(at: world.now) { return }
                    world.step()
                    continue
                }
                world.now = max(world.now, until)
            }
            world.commit(fails: false)
            world.answer()
            world.step()
        }
    }

    /// What is drawn above is drawn: none of it is too rare to be tried.
    @Test func triesEverything() {
        var counts: [String: Int] = [:]
        var states: Set<String> = []
        for seed in 1...20 {
            var world = EventWorld(seed: seed)
            for _ in 0..<1000 {
                happen(&world)
                world.step()
                states.insert(world.schedule.state.word)
            }
            counts.merge(world.counts, uniquingKeysWith: +)
            counts["stray", default: 0] += world.schedule.strayAnswers
            counts["bisect", default: 0] += world.schedule.bisects
        }
        let words = ["batch", "preview", "refresh", "bind", "stray", "spare", "bisect"]
        #expect(words.allSatisfy { counts[$0, default: 0] > 10 }, "\(counts)")
        #expect(states.isSuperset(of: ["active", "paused", "taken"]))
    }
}
