import Profiles
import ProfilesTestSupport
import Testing

@Suite struct ProfileResolutionTests {
    private let profiles: [String: Tree] = [
        "base": [
            "url": "${base_url}/a", "record": ["lat": "$lat", "point": ["x": "$lon", "y": "$lat"]], "max_records": 1,
        ],
        "mine": ["extends": "base", "record": ["point": ["y": 0, "z": 1], "speed": "$speed_mps"], "ascii": true],
        "over": ["extends": "mine", "record": "$location"],
        "round": ["extends": "robin"], "robin": ["extends": "round"], "lost": ["extends": "bsae"],
    ]

    private func resolve(_ name: String) -> Result<ProfileNode, ProfileProblems> {
        Profile.resolve(name, lookup: { profiles[$0]?.node }, names: profiles.keys.sorted())
    }

    @Test func keepsTheOrderOfTheBaseAndAppendsWhatIsNew() throws {
        #expect(
            try resolve("mine").get()
                == ([
                    "url": "${base_url}/a",
                    "record": ["lat": "$lat", "point": ["x": "$lon", "y": 0, "z": 1], "speed": "$speed_mps"],
                    "max_records": 1, "ascii": true,
                ] as Tree).node)
    }

    @Test func replacesATableByWhatIsNone() throws {
        #expect(
            try resolve("over").get()
                == (["url": "${base_url}/a", "record": "$location", "max_records": 1, "ascii": true] as Tree).node)
    }

    @Test func tellsOfCircles() {
        guard case .failure(let problems) = resolve("round") else { return #expect(Bool(false)) }
        #expect(problems.list.map(\.keyPath) == ["extends"])
        #expect(problems.list[0].message.contains("round → robin → round"))
    }

    @Test func tellsOfBasesThatAreNot() {
        guard case .failure(let problems) = resolve("lost") else { return #expect(Bool(false)) }
        #expect(problems.list.map(\.suggestion) == ["base"])
        guard case .failure(let unknown) = resolve("min") else { return #expect(Bool(false)) }
        #expect(unknown.list.map(\.suggestion) == ["mine"])
    }
}
