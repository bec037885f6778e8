import CLinux
import Glibc
import Testing
import WaypostCore

@testable import WaypostHost

@Suite struct EventLoopTests {
    @Test func firesAlarmsInTheOrderOfTheirDeadlines() throws {
        let loop = try EventLoop()
        var fired: [String] = []
        let second = loop.alarm { _ in
            fired.append("second")
            loop.stop()
        }
        let first = loop.alarm { _ in fired.append("first") }
        first.deadline = loop.now + .milliseconds(2)
        second.deadline = loop.now + .milliseconds(20)
        try loop.run()
        #expect(fired == ["first", "second"])
        #expect(first.deadline == nil)
    }

    @Test func servesWaitingInputBeforeADeadlineThatIsOverdue() throws {
        let pipe = try Pipe()
        let loop = try EventLoop()
        var order: [String] = []
        try loop.watch(pipe.reading) { _, _ in
            order.append("input")
            loop.forget(pipe.reading)
        }
        let alarm = loop.alarm { _ in
            order.append("deadline")
            loop.stop()
        }
        alarm.deadline = loop.now - .seconds(5)
        pipe.write([1])
        try loop.run()
        #expect(order == ["input", "deadline"])
    }

    @Test func alarmsGetTheirTurnInAFloodOfInput() throws {
        let pipe = try Pipe()
        let loop = try EventLoop()
        var served = 0
        // Never read: the descriptor stays ready for ever.
        try loop.watch(pipe.reading) { _, _ in served += 1 }
        let alarm = loop.alarm { _ in loop.stop() }
        alarm.deadline = loop.now
        pipe.write([1])
        try loop.run()
        #expect(served > 0)
    }

    @Test func aHandlerMayForgetAndCloseAnotherReadyDescriptor() throws {
        let pipes = try [Pipe(), Pipe()]
        let loop = try EventLoop()
        var served: [Int] = []
        for (index, pipe) in pipes.enumerated() {
            try loop.watch(pipe.reading) { _, _ in
                served.append(index)
                for pipe in pipes { loop.forget(pipe.reading) }
                loop.stop()
            }
            pipe.write([1])
        }
        try loop.run()
        #expect(served.count == 1)
    }

    @Test func watchesADescriptorAgainThatWasClosedAndOpenedUnderTheSameNumber() throws {
        let (first, second) = try (Pipe(), Pipe())
        let loop = try EventLoop()
        let number = dup(first.reading)
        try loop.watch(number) { _, _ in }
        close(number)
        #expect(dup2(second.reading, number) == number)
        defer { close(number) }
        var served = false
        try loop.watch(number) { _, _ in
            served = true
            loop.stop()
        }
        let limit = loop.alarm { _ in loop.stop() }
        limit.deadline = loop.now + .seconds(5)
        second.write([1])
        try loop.run()
        #expect(served)
    }

    @Test func refusesAFileThatEpollCannotWatch() throws {
        let loop = try EventLoop()
        let file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        #expect(throws: SystemError.self) { try loop.watch(file) { _, _ in } }
    }

    @Test func anAlarmLeavesTheLoopWithItsOwner() throws {
        let loop = try EventLoop()
        var fired: [String] = []
        var dropped: EventLoop.Alarm? = loop.alarm { _ in fired.append("dropped") }
        var ends: EventLoop.Alarm? = loop.alarm { _ in
            fired.append("first")
            dropped = nil
        }
        let last = loop.alarm { _ in loop.stop() }
        ends?.deadline = loop.now
        dropped?.deadline = loop.now + .milliseconds(1)
        last.deadline = loop.now + .milliseconds(5)
        #expect(loop.alarmCount == 3)
        try loop.run()
        ends = nil
        #expect(fired == ["first"])
        #expect(loop.alarmCount == 1)
    }

    @Test func waitsWithoutWakingWhenThereIsNothingToDo() throws {
        let loop = try EventLoop()
        let alarm = loop.alarm { _ in loop.stop() }
        alarm.deadline = loop.now + .milliseconds(50)
        try loop.run()
        #expect(loop.wakeups == 1)
    }
}

/// A pipe that is closed when it goes away.
private final class Pipe {
    let reading: Int32
    let writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError("pipe") }
        reading = ends[0]
        writing = ends[1]
    }

    func write(_ bytes: [UInt8]) { _ = Glibc.write(writing, bytes, bytes.count) }

    deinit {
        close(reading)
        close(writing)
    }
}
