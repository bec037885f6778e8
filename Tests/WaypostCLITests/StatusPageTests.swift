import Testing
import WaypostControl
import WaypostCore

@testable import WaypostCLI

@Suite struct StatusPageTests {
    private func endpoint(_ name: String, last: Double? = 14, waiting: Int = 0) -> EndpointStatus {
        var endpoint = EndpointStatus()
        (endpoint.name, endpoint.state, endpoint.lastSuccessAge, endpoint.waiting) = (name, "active", last, waiting)
        return endpoint
    }

    private func status(_ endpoints: [EndpointStatus]) -> Status {
        var status = Status()
        (status.version, status.health, status.endpoints) = ("0.1.0", "ok", endpoints)
        (status.motion.state, status.motion.since, status.motion.lastFixAge) = (
            "stationary", "2026-03-02T07:24:47.000Z", 2
        )
        (status.source.name, status.source.state) = ("serial /dev/ttyACM0", "receiving")
        status.power.battery = 87
        return status
    }

    private func lines(_ status: Status, look: Look? = nil) -> [String] {
        let now = UTCTime(milliseconds: 1_772_443_487_000)
        return StatusPage(status: status, look: look, now: now) { String($0.iso8601.prefix(16)) }.lines
    }

    @Test func aVanThatIsWellIsToldInAFewLines() {
        #expect(
            lines(status([endpoint("traccar")])) == [
                "waypost 0.1.0: ok", "parked     since 2026-03-02T07:24 (2 h), battery 87 %",
                "receiver   serial /dev/ttyACM0: receiving, last fix 2 s ago",
                "server     traccar: last upload 14 s ago",
                "queue      empty",
            ])
    }

    @Test func aVanWithoutAServerIsToldWhatAsksForOne() {
        let found = lines(status([]))
        #expect(found.contains("server     \(Status.noServer)") && Status.noServer.contains("sudo waypost init"))
        var live = status([])
        live.channels = [ChannelStatus()]
        #expect(lines(live).allSatisfy { !$0.hasPrefix("server") })
    }

    @Test func whatIsWiderThanTheTerminalGoesOnBelowItsWords() {
        let line = "problem    main: 127.0.0.1:5056: Connection refused: does the server run, and does it listen there?"
        #expect(
            StatusPage.wrapped(line, columns: 80) == [
                "problem    main: 127.0.0.1:5056: Connection refused: does the server run, and",
                "           does it listen there?",
            ])
        #expect(StatusPage.wrapped(line, columns: 120) == [line] && StatusPage.wrapped(line, columns: 20) == [line])
    }

    @Test func serversThatAreWellShareALineWhereThereAreMany() {
        var bad = endpoint("b", last: nil, waiting: 3)
        bad.problem = "status 503"
        bad.advice = "look into its log"
        var all = status(["a", "c", "d", "e"].map { endpoint($0) } + [bad])
        (all.health, all.problems) = ("degraded", ["b: status 503; retry in 2 s"])
        #expect(
            lines(all).suffix(5) == [
                "server     4 of 5 are well, last upload at most 14 s ago",
                "server     b: nothing accepted since the start, 3 locations wait", "queue      3 locations",
                "problem    b: status 503; retry in 2 s", "           do: look into its log",
            ])
    }

    @Test func thePlaceIsToldOnlyToWhoeverAsks() {
        var look = Look()
        var fix = FixLook()
        (fix.latitude, fix.longitude, fix.accuracy, fix.speed) = (-33.7654321, 151.0000004, 3, 10)
        look.fix = fix
        #expect(lines(status([])).allSatisfy { !$0.contains("33.") })
        #expect(lines(status([]), look: look)[2] == "where      -33.765432, 151.000000 (accuracy 3 m), 36 km/h")
    }

    @Test(arguments: [("stat", "status"), ("staus", "status"), ("chekc", "check"), ("run", nil), ("frobnicate", nil)])
    func aWordThatIsNearlyACommandIsNamed(_ word: String, _ command: String?) {
        #expect(Waypost.nearestCommand(word) == command)
    }
}
