import Glibc
import TestSupport
import Testing

@testable import Journal

@Suite struct NotifierTests {
    @Test func sendsTheProtocolInOrder() throws {
        let manager = try DatagramReceiver()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.path])
        #expect(notifier.isActive)
        notifier.ready(status: "moving, queue 3")
        notifier.watchdog()
        notifier.status("parked\nqueue 0")
        notifier.reloading(monotonicMicroseconds: 123_456)
        notifier.ready()
        notifier.stopping()
        #expect(
            manager.texts() == [
                "READY=1\nSTATUS=moving, queue 3", "WATCHDOG=1",
                "STATUS=parked\\x0aqueue 0", "RELOADING=1\nMONOTONIC_USEC=123456", "READY=1", "STOPPING=1",
            ])
    }

    @Test func abstractNameHasItsExactLength() throws {
        let manager = try DatagramReceiver(abstractName: "waypost-test-\(getpid())")
        #expect(Notifier(environment: ["NOTIFY_SOCKET": manager.path]).ready())
        #expect(manager.texts() == ["READY=1"])
    }

    @Test func sendsAStatusOnlyWhenItChanges() throws {
        let manager = try DatagramReceiver()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.path])
        for text in ["a", "a", "b", "b", "a"] { notifier.status(text) }
        #expect(manager.texts() == ["STATUS=a", "STATUS=b", "STATUS=a"])
    }

    @Test(arguments: [nil, "", "relative/path", "@", "vsock:2:1", "/" + String(repeating: "x", count: 108)])
    func isSilentWithoutAUsableSocket(address: String?) {
        let notifier = Notifier(environment: address.map { ["NOTIFY_SOCKET": $0] } ?? [:])
        #expect(!notifier.isActive)
        #expect(!notifier.ready())
        #expect(!notifier.watchdog())
    }

    @Test func goesOnWhenTheManagerIsAwayOrDoesNotRead() throws {
        let manager = try DatagramReceiver()
        let notifier = Notifier(environment: ["NOTIFY_SOCKET": manager.path])
        var taken = 0
        while taken < 100_000, notifier.watchdog() { taken += 1 }
        #expect(taken < 100_000)
        #expect(manager.datagrams().count == taken)
        #expect(notifier.watchdog())
        manager.stop()
        #expect(!notifier.watchdog())
        #expect(!notifier.status("lost"))
        try manager.startAgain()
        #expect(notifier.watchdog())
        notifier.status("lost")
        #expect(manager.texts() == ["WATCHDOG=1", "STATUS=lost"])
    }
}

@Suite struct WatchdogTests {
    @Test func isDueAtOnceAndThenEveryHalf() throws {
        var watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "60000000"], at: 1000))
        #expect(watchdog.interval == 30_000_000_000)
        let answers = [1000, 1001, 30_000_000_999, 30_000_001_000, 30_000_001_001].map { watchdog.isDue(at: $0) }
        #expect(answers == [true, false, false, true, false])
        #expect(watchdog.nextDeadline == 60_000_001_000)
    }

    @Test func isDueOnceAfterALongStall() throws {
        var watchdog = try #require(Watchdog(environment: ["WATCHDOG_USEC": "2000000"], at: 0))
        let answers = [0, 90_000_000_000, 90_000_000_001].map { watchdog.isDue(at: $0) }
        #expect(answers == [true, true, false])
    }

    @Test(arguments: [[:], ["WATCHDOG_USEC": "0"], ["WATCHDOG_USEC": "-5"], ["WATCHDOG_USEC": "soon"]])
    func isNotWantedWithoutATime(environment: [String: String]) {
        #expect(Watchdog(environment: environment, at: 0) == nil)
    }

    static let processes: [(String, Bool)] = [("", true), ("42", true), ("43", false)]

    @Test(arguments: processes)
    func isOursOnlyIfWeAreMeant(pid: String, wanted: Bool) {
        let environment = ["WATCHDOG_USEC": "1000000", "WATCHDOG_PID": pid]
        #expect((Watchdog(environment: environment, processID: 42, at: 0) != nil) == wanted)
    }

    @Test func absurdTimesDoNotOverflow() throws {
        let environment = ["WATCHDOG_USEC": String(UInt64.max)]
        var watchdog = try #require(Watchdog(environment: environment, at: .max - 1))
        let due = watchdog.isDue(at: .max)
        #expect(due)
        #expect(watchdog.nextDeadline == .max)
    }
}
