// swift-tools-version: 6.2
import PackageDescription

// Warnings are errors in every target of ours; dependencies keep their own settings.
let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

/// The tools that prove waypost, and their tests: nothing that a user or a change of the daemon needs. `scripts/build` sets
/// the variable where a tool is asked for.
let hasTools = Context.environment["WAYPOST_TOOLS"] == "1"
/// The only test targets to build, separated by commas; nil for all. `make quick` sets the variable.
let chosenTests = Context.environment["WAYPOST_TESTS"]?.split(separator: ",").map(String.init)

let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

/// A Swift target of the daemon. Arrows point one way: see "Targets" in docs/architecture.md.
///
/// - Parameters:
///   - folder: of `Sources`, where the name has a prefix: a library product and what it needs, since names of targets are unique
///     among all packages of a program. nil for the name.
///   - embedded: files that become part of the binary.
///   - isRare: runs at a start or when a person asks, and not for each fix: a release is optimised for its size. No library
///     product may depend on it, since packages that use one cannot have such flags.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], folder: String? = nil, embedded: [String] = [],
    isRare: Bool = false
) -> Target {
    let size = SwiftSetting.unsafeFlags(["-Osize"], .when(configuration: .release))
    return .target(
        name: name, dependencies: dependencies, path: folder.map { "Sources/\($0)" },
        resources: embedded.map { .embedInCode($0) }, swiftSettings: strict + (isRare ? [size] : []))
}

/// A target in C or C++: a shim without logic, or embedded files. A release checks the ends of buffers whose size the compiler knows.
func shim(_ name: String, linked libraries: [String] = []) -> Target {
    .target(
        name: name, cSettings: [.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))],
        cxxSettings: [.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))],
        linkerSettings: libraries.map { .linkedLibrary($0) })
}

func tool(_ name: String, _ dependencies: [Target.Dependency], path: String) -> Target {
    .executableTarget(
        name: name, dependencies: dependencies + [argumentParser], path: path, swiftSettings: strict)
}

/// - Parameter tables: files beside the tests that they read where they lie.
func tests(_ name: String, _ dependencies: [Target.Dependency], tables: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies + ["TestSupport"], exclude: tables, swiftSettings: strict)
}

let daemon: [Target] = [
    // The pure core: no I/O, no clock, no randomness, no async, no logger.
    module("WaypostCore", folder: "Core"),
    // libcrypto, so that the core needs no library.
    module("Hash", ["CCrypto"]),
    // Bytes to fixes, fixes to decisions.
    module("WaypostNMEA", ["WaypostCore"], folder: "NMEA"),
    module("WaypostTracking", ["WaypostCore"], folder: "Tracking"),
    // What a server reads and answers, and when a batch goes.
    module("Protocols", ["WaypostCore"]),
    module("Profiles", ["WaypostCore", "Protocols"]),
    module("Delivery", ["WaypostCore", "Protocols", "Profiles"]),
    module("Channel", ["WaypostCore", "WaypostTracking", "Profiles"]),
    module("Places", ["WaypostCore", "WaypostTracking", "Protocols"]),
    module("Remote", ["WaypostCore"], isRare: true),

    // The edges.
    module("WaypostHost", ["WaypostCore", "CLinux"], folder: "Host"),
    module("Journal", ["WaypostCore", logging]),
    module("Sensors", ["WaypostCore", "WaypostHost", "WaypostNMEA", "Places", "CBus", "CGPS", "CLinux", "CUdev"]),
    module("Queue", ["WaypostCore", "WaypostHost", "Profiles", "Delivery", "CLinux", "CSQLite"]),
    module("Network", ["WaypostCore", "Hash", "Protocols", "Profiles", "CCrypto", "CCurl", "CDeflate"]),
    module(
        "Configuration",
        [
            "WaypostCore", "Hash", "WaypostHost", "WaypostNMEA", "WaypostTracking", "Protocols", "Profiles", "Network",
            "Queue", "Sensors", "Remote", "Places", "CLinux", "CTOML", logging,
        ], embedded: ["Profiles"], isRare: true),
    module("WaypostControl", ["WaypostCore", "WaypostHost", "CLinux"], folder: "Control"),

    // Composition.
    module(
        "Daemon",
        [
            "WaypostCore", "Hash", "Journal", "WaypostHost", "WaypostNMEA", "WaypostTracking", "Protocols", "Profiles",
            "Delivery", "Network", "Queue", "Sensors", "Remote", "Places", "Channel", "WaypostControl", "Configuration",
            "CLinux", logging,
        ]),

    // Logs through decoding and tracking, and the page of a log.
    module(
        "Inspect",
        [
            "WaypostCore", "Hash", "WaypostHost", "WaypostNMEA", "WaypostTracking", "Profiles", "Network", "Places",
            "Configuration", "CLinux", "CPages",
        ]),
    // What is wrong with a host, from its files and a few values.
    module(
        "Doctor",
        [
            "WaypostCore", "WaypostHost", "WaypostNMEA", "Protocols", "Sensors", "WaypostControl", "Configuration",
            "CLinux",
        ],
        isRare: true),
    module(
        "WaypostCLI",
        [
            "WaypostCore", "WaypostHost", "Protocols", "Profiles", "Delivery", "Network", "Queue", "Sensors",
            "WaypostControl", "Configuration", "Inspect", "Doctor", "Daemon", "CLinux", argumentParser,
        ], isRare: true),
    .executableTarget(name: "waypost", dependencies: ["WaypostCLI"], swiftSettings: strict),

    // System libraries: shims and module maps, no logic.
    shim("CCurl", linked: ["curl"]),
    shim("CTOML"),
    shim("CLinux"),
    // sd-bus, loaded at run time.
    shim("CBus"),
    // The files of Sources/Pages, embedded.
    shim("CPages"),
    // Headers alone: the library is loaded at run time. See Sources/CGPS/include/CGPS.h.
    shim("CGPS"),
    shim("CSQLite", linked: ["sqlite3"]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CUdev", pkgConfig: "libudev", providers: [.apt(["libudev-dev"])]),
    .systemLibrary(name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"])]),
]

/// What the demo and the tests need besides; never in the device package.
let helpers: [Target] = [
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .executableTarget(
        name: "waypost-collector",
        dependencies: [
            "WaypostCore", "CPages", "CZlib", argumentParser, .product(name: "FlyingFox", package: "FlyingFox"),
            .product(name: "FlyingSocks", package: "FlyingFox"),
        ],
        path: "Sources/Collector", swiftSettings: strict),
    module("DriveSimulation", ["WaypostCore"]),
    // The whole daemon in a world that is made up: docs/architecture.md.
    shim("CSimDisk", linked: ["sqlite3"]),
    module(
        "Simworld",
        [
            "WaypostCore", "Hash", "WaypostHost", "WaypostNMEA", "Protocols", "Profiles", "Delivery", "Network",
            "Queue", "Sensors", "Remote", "Channel", "Configuration", "Daemon", "DriveSimulation", "CSimDisk", logging,
        ]),
]

let daemonTests: [Target] = [
    .target(
        name: "TestSupport", dependencies: ["DriveSimulation"], path: "Tests/Support", swiftSettings: strict),
    .target(
        name: "ConfigurationTestSupport", dependencies: ["WaypostCore", "Configuration"],
        path: "Tests/ConfigurationSupport", swiftSettings: strict),
    .target(
        name: "ProfilesTestSupport", dependencies: ["WaypostCore", "Profiles"], path: "Tests/ProfilesSupport",
        swiftSettings: strict),
    tests("CoreTests", ["WaypostCore", "Protocols"]),
    tests("NMEATests", ["WaypostCore", "WaypostNMEA"]),
    tests("TrackingTests", ["WaypostCore", "WaypostNMEA", "WaypostTracking", "DriveSimulation"]),
    tests("ProtocolsTests", ["WaypostCore", "Protocols"]),
    tests("ProfilesTests", ["WaypostCore", "Protocols", "Profiles", "Delivery", "ProfilesTestSupport"]),
    tests("DeliveryTests", ["WaypostCore", "Protocols", "Profiles", "Delivery", "ProfilesTestSupport"]),
    tests("ChannelTests", ["WaypostCore", "WaypostTracking", "Profiles", "Channel"]),
    tests("PlacesTests", ["WaypostCore", "WaypostTracking", "Protocols", "Places"]),
    tests("RemoteTests", ["WaypostCore", "Remote"]),
    tests("HostTests", ["WaypostCore", "WaypostHost", "CLinux"]),
    tests("JournalTests", ["Journal", logging]),
    tests("SensorsTests", ["WaypostCore", "WaypostNMEA", "Sensors", "CLinux", "CUdev"]),
    tests("QueueTests", ["WaypostCore", "Profiles", "Delivery", "Queue", "CSQLite"]),
    tests(
        "NetworkTests",
        ["WaypostCore", "Hash", "WaypostTracking", "Protocols", "Profiles", "Network", "Channel", "CCurl", "CLinux"]),
    tests(
        "ConfigurationTests",
        [
            "WaypostCore", "WaypostNMEA", "WaypostTracking", "Profiles", "Queue", "Sensors", "Remote", "Places",
            "Configuration", "ConfigurationTestSupport",
        ]),
    tests("ControlTests", ["WaypostCore", "WaypostControl"]),
    tests(
        "DaemonTests",
        [
            "WaypostCore", "Hash", "Journal", "WaypostHost", "WaypostNMEA", "WaypostTracking", "Protocols", "Profiles",
            "Delivery", "Network", "Queue", "Sensors", "Remote", "Places", "Channel", "WaypostControl", "Configuration",
            "Daemon", "WaypostCLI", "ConfigurationTestSupport", "CLinux", logging,
        ]),
    tests(
        "InspectTests",
        [
            "WaypostCore", "WaypostHost", "WaypostNMEA", "WaypostTracking", "Sensors", "Configuration", "Inspect",
            "ConfigurationTestSupport", "CLinux",
        ]),
    tests(
        "DoctorTests",
        ["WaypostCore", "Protocols", "WaypostControl", "Configuration", "Doctor", "ConfigurationTestSupport"]),
    tests(
        "WaypostCLITests",
        [
            "WaypostCore", "Hash", "Protocols", "Profiles", "Delivery", "Network", "WaypostControl", "Configuration",
            "Doctor", "WaypostCLI", "ConfigurationTestSupport", argumentParser,
        ]),
    tests("CollectorTests", ["waypost-collector", "WaypostCore", .product(name: "FlyingFox", package: "FlyingFox")]),
    tests("SystemTests", ["CSQLite"]),
    tests(
        "SimworldTests",
        [
            "WaypostCore", "Profiles", "Delivery", "Queue", "Configuration", "Daemon", "Simworld", "CSQLite",
            "CSimDisk", logging,
        ]),
]

let tools: [Target] = [
    tool("waypost-simulate", ["WaypostCore", "DriveSimulation"], path: "Sources/Simulator"),
    // How good decisions are, against the truth of simulated drives and in points and metres on recorded ones.
    module("Scoring", ["WaypostCore", "WaypostNMEA", "WaypostTracking", "DriveSimulation"]),
    tool("waypost-score", ["WaypostCore", "WaypostTracking", "DriveSimulation", "Scoring"], path: "Sources/Score"),
    // What ten thousand devices do to one server.
    module("Fleet", ["WaypostCore", "Profiles", "Delivery", "DriveSimulation"]),
    tool("waypost-fleet", ["Fleet"], path: "Sources/FleetCommand"),
    tool("waypost-simworld", ["Simworld", "CSimDisk"], path: "Sources/SimworldCommand"),

    tests("SimulationTests", ["WaypostCore", "DriveSimulation"]),
    tests("ScoringTests", ["WaypostCore", "WaypostTracking", "DriveSimulation", "Scoring"]),
    tests("FleetTests", ["WaypostCore", "Fleet"]),
    // Needs ../shared/corpus and ../shared/vectors; `.ci/run` and `make corpus` run it, `make test` does not.
    tests(
        "CorpusTests",
        [
            "WaypostCore", "WaypostNMEA", "WaypostTracking", "Profiles", "Channel", "Configuration", "DriveSimulation",
            "Scoring",
        ],
        tables: ["Halts.tsv"]),
]

/// Executables of targets with the same name.
func executables(_ names: String...) -> [Product] { names.map { .executable(name: $0, targets: [$0]) } }

let package = Package(
    name: "waypost",
    products: [
        .library(name: "WaypostCore", targets: ["WaypostCore"]),
        .library(name: "WaypostNMEA", targets: ["WaypostNMEA"]),
        .library(name: "WaypostTracking", targets: ["WaypostTracking"]),
        .library(name: "WaypostControl", targets: ["WaypostControl"]),
    ] + executables("waypost", "waypost-collector")
        + (hasTools ? executables("waypost-simulate", "waypost-score", "waypost-fleet", "waypost-simworld") : []),
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/swhitty/FlyingFox", exact: "0.27.1"),
    ],
    targets: (daemon + helpers + daemonTests + (hasTools ? tools : [])).filter { target in
        target.type != .test || chosenTests?.contains(target.name) ?? true
    },
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
