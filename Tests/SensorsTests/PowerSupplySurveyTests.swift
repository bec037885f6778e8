import CLinux
import Glibc
import TestSupport
import Testing
import WaypostCore

@testable import Sensors

@Suite struct PowerSupplySurveyTests {
    private let folder: SupplyFolder

    init() throws { folder = try SupplyFolder() }

    private var now: EventTime { EventTime(nanoseconds: waypost_boottime_ns()) }

    private func answers(of survey: PowerSupplySurvey) throws -> [PowerSupply] {
        var ready = pollfd(fd: survey.descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&ready, 1, 60_000) == 1)
        return survey.collect().answers
    }

    @Test func asksEachInTurnAndSaysSoOnce() throws {
        try folder.set("BAT0", ["type": "Battery\n", "capacity": "50\n"])
        try folder.set("AC", ["type": "Mains\n", "online": "1\n"])
        let survey = try #require(PowerSupplySurvey(PowerSupplyReader(root: folder.path)))
        survey.ask(["AC", "BAT0"], at: now)
        let told = try answers(of: survey)
        #expect(Set(told.map(\.name)) == ["AC", "BAT0"])
        #expect(survey.collect().answers.isEmpty && survey.collect().open.isEmpty)
        // The thread is gone; another one takes the next question.
        survey.ask(["BAT0"], at: now)
        #expect(try answers(of: survey).first?.capacity == 50)
    }

    @Test func oneThatHangsHoldsUpNoOther() throws {
        try folder.set("BAT0", ["type": "Battery\n"])
        try folder.block("capacity", of: "BAT0")
        try folder.set("AC", ["type": "Mains\n", "online": "1\n"])
        let survey = try #require(PowerSupplySurvey(PowerSupplyReader(root: folder.path)))
        survey.ask(["BAT0", "AC"], at: now)
        // Not before the timeout.
        survey.startOverdue(at: now)
        #expect(survey.collect().open.map(\.name).sorted() == ["AC", "BAT0"])
        survey.startOverdue(at: now + PowerSupplySurvey.timeout)
        #expect(try answers(of: survey).map(\.name) == ["AC"])
        // It is not asked a second time while the first answer is missing.
        survey.ask(["BAT0", "AC"], at: now + .seconds(5))
        #expect(try answers(of: survey).map(\.name) == ["AC"])
        #expect(survey.collect().open.compactMap { $0.since != nil ? $0.name : nil } == ["BAT0"])
        // Its thread may not have come to the file yet.
        while try !folder.answer("capacity", of: "BAT0", "42\n") { sched_yield() }
        var last: PowerSupply?
        while last == nil { last = try answers(of: survey).last }
        #expect(last?.name == "BAT0" && last?.capacity == 42)
    }

    @Test func aBoardFullOfThoseThatHangDoesNotFillUpWithThreads() throws {
        let names = (0..<20).map { "BAT\($0)" }
        for name in names {
            try folder.set(name, ["type": "Battery\n"])
            try folder.block("capacity", of: name)
        }
        let survey = try #require(PowerSupplySurvey(PowerSupplyReader(root: folder.path)))
        for second in 0..<100 { survey.ask(names, at: now + .seconds(second)) }
        let open = survey.collect().open
        #expect(open.count == 8 && open.allSatisfy { $0.since != nil })
        for question in open {
            while try !folder.answer("capacity", of: question.name, "1\n") { sched_yield() }
        }
    }
}
