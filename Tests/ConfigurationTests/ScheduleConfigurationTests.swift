import ConfigurationTestSupport
import Glibc
import Profiles
import TestSupport
import Testing
import WaypostCore
import WaypostTracking

@testable import Configuration

@Suite struct ScheduleConfigurationTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let noon = UTCTime(milliseconds: 1_772_452_800_000)

    private func timetable(
        _ text: String, _ environment: ConfigurationEnvironment = testEnvironment()
    ) throws -> Timetable {
        try loaded(smallest + upload + "[schedule]\n" + text, environment).config.timetable
    }

    @Test func withoutScheduleThereIsNoWindow() throws {
        let config = try loaded(smallest + upload).config
        #expect(config.timetable.tracking(at: Self.noon) == nil)
        #expect(config.timetable == Timetable())
    }

    @Test func oneTextOrSeveral() throws {
        for track in ["\"mon-tue 08:00-18:00\"", "[\"mon 08:00-18:00\", \"tue 08:00-18:00\"]"] {
            // A Monday.
            let state = try #require(try timetable("track = \(track)").tracking(at: Self.noon))
            #expect(state.isOpen && state.until?.iso8601 == "2026-03-02T18:00:00.000Z")
        }
    }

    static let zones: [(String, Int)] = [
        ("Europe/Berlin", 17), ("America/New_York", 13), ("Asia/Kolkata", 12), ("UTC", 18),
    ]

    @Test(arguments: zones)
    func theTimeZoneIsTheOneThatIsNamed(zone: String, hour: Int) throws {
        let state = try timetable("track = \"08:00-18:00\"\ntimezone = \"\(zone)\"").tracking(at: Self.noon)
        #expect(state?.until?.timeOfDay == hour * 3_600_000 + (hour == 12 ? 1_800_000 : 0))
    }

    @Test func elseItIsTheHosts() throws {
        func until(_ variables: [String: String] = [:], localTime: String = "/nonexistent") throws -> Int? {
            var environment = testEnvironment(variables)
            environment.localTime = localTime
            let state = try timetable("track = \"08:00-18:00\"", environment).tracking(at: Self.noon)
            return state?.until.map { $0.timeOfDay / 3_600_000 }
        }
        let link = "\(directory.path)/localtime"
        #expect(symlink("/usr/share/zoneinfo/Europe/Berlin", link) == 0)
        #expect(try until() == 18)
        #expect(try until(localTime: link) == 17)
        #expect(try until(["TZ": "America/New_York"], localTime: link) == 13)
        #expect(try until(["TZ": ":\(link)"]) == 17)
        #expect(try until(["TZ": "EST5"], localTime: link) == 13)
        #expect(try until(["TZ": "nonsense"], localTime: link) == 18)
        var environment = testEnvironment()
        environment.localTime = link
        let shown = try loaded(smallest + upload, environment).effective.description
        #expect(shown.contains("timezone = \"Europe/Berlin\"  # the host's\n"))
        #expect(shown.contains("# track is not set"))
    }

    static let mistakes = rows(
        #"""
        track = "mon-fry 08:00-18:00"
        → w.toml:7:9: schedule.track: found "fry" at character 5 of "mon-fry 08:00-18:00", expected a day (mon, tue, wed, thu, fri, sat, sun) (did you mean "fri"?)
        track = ["mon 08:00-18:00", "tue 08:00"]
        → w.toml:7:29: schedule.track: found the end of "tue 08:00", expected "-" and the time at which the hours end
        track = []
        → w.toml:7:9: schedule.track: found an empty list, expected hours such as "mon-fri 08:00-18:00", or a list of them
        track = ["mon", 5]
        → w.toml:7:17: schedule.track: found 5, expected hours such as "mon-fri 08:00-18:00", or a list of them
        track = 5 → w.toml:7:9: schedule.track: found 5, expected hours such as "mon-fri 08:00-18:00", or a list of them
        timezone = "Europe/Berln"
        → w.toml:7:12: schedule.timezone: found "Europe/Berln", expected a time zone of /usr/share/zoneinfo such as "Europe/Berlin" (older names are in package tzdata-legacy) (did you mean "Europe/Berlin"?)
        timezone = "../zoneinfo/UTC"
        → w.toml:7:12: schedule.timezone: found "../zoneinfo/UTC", expected a time zone of /usr/share/zoneinfo such as "Europe/Berlin" (older names are in package tzdata-legacy)
        timezone = "Europe"
        → w.toml:7:12: schedule.timezone: found "Europe", expected a time zone of /usr/share/zoneinfo such as "Europe/Berlin" (older names are in package tzdata-legacy)
        tracks = "mon"
        → w.toml:7:1: schedule.tracks: found an unknown key, expected a key of [schedule] (did you mean track?)
        """#)

    @Test(arguments: mistakes) func namesMistakes(text: String, problem: String) {
        #expect(problems(smallest + upload + "[schedule]\n" + text) == [problem])
    }

    @Test func aHostWithoutTimeZonesIsToldWhatToInstall() {
        var environment = testEnvironment()
        environment.zoneInfo = directory.path
        let found = problems(smallest + upload + "[schedule]\ntimezone = \"Europe/Berlin\"", environment)
        #expect(
            found == [
                "w.toml:7:12: schedule.timezone: found \"Europe/Berlin\" on a host without \(directory.path), expected the tz database to be there (package tzdata)"
            ])
        #expect(problems(smallest + upload + "[schedule]\ntimezone = \"UTC\"", environment).isEmpty)
    }

    @Test func aMistakeInHoursSaysWhere() {
        let form = ValueForm<String>.hours
        let node = TOMLNode(value: .string("mon 8-9"), position: SourcePosition(file: "w.toml", line: 1, column: 1))
        let mistake = #expect(throws: Mistake.self) { try form.read(node, testEnvironment()) }
        #expect(mistake?.found == "\"8\" at character 5 of \"mon 8-9\"")
    }
}
