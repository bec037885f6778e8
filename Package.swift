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
///   - embedded: files that become part of the binary.
///   - isRare: runs at a start or when a person asks, and not for each fix: a release is optimised for its size. No library
///     product may depend on it, since packages that use one cannot have such flags.
func module(
    _ name: String, _ dependencies: [Target.Dependency] = [], embedded: [String] = [], isRare: Bool = false
) -> Target {
    let size = SwiftSetting.unsafeFlags(["-Osize"], .when(configuration: .release))
    return .target(
        name: name, dependencies: dependencies, resources: embedded.map { .embedInCode($0) },
        swiftSettings: strict + (isRare ? [size] : []))
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
    module("Positioning"),
    module("JSON"),
    module("NMEA", ["JSON", "Positioning"]),
    module("Tracking", ["Positioning"]),
    module("Delivery", ["JSON", "Live", "Positioning"]),
    module("Live", ["Positioning"]),
    module("Channel", ["JSON", "Positioning", "Tracking", "Delivery"]),
    module("Places", ["JSON", "Positioning", "Tracking", "Delivery"]),
    module("Remote", ["JSON", "Positioning"], isRare: true),

    // The edges.
    module("Sensors", ["Positioning", "NMEA", "Places", "CBus", "CLinux", "CGPS", "CUdev"]),
    module("Outbox", ["JSON", "Positioning", "Delivery", "CSQLite", "CLinux"]),
    module("Uplink", ["Delivery", "Live", "Positioning", "CCurl", "CCrypto", "CDeflate"]),
    module("Systemd", ["Positioning", logging]),
    module("EventLoop", ["Positioning", "Uplink", "CLinux"]),

    module(
        "Configuration",
        [
            "JSON", "Positioning", "NMEA", "Places", "Tracking", "Delivery", "Remote", "Sensors", "Outbox",
            "Uplink",
            "CLinux", "CTOML", logging,
        ],
        embedded: ["Profiles"], isRare: true),
    module("ControlProtocol", ["JSON", "Positioning", "EventLoop", "CLinux"]),
    module(
        "Replay",
        [
            "JSON", "Positioning", "NMEA", "Places", "Tracking", "Delivery", "EventLoop", "Configuration", "CLinux",
        ]),
    module(
        "Report",
        [
            "JSON", "Positioning", "NMEA", "Tracking", "Delivery", "EventLoop", "Configuration", "Uplink", "Replay",
            "CPages",
        ]),

    // Composition.
    module(
        "Agent",
        [
            "JSON", "Positioning", "NMEA", "Places", "Tracking", "Delivery", "Live", "Channel", "Remote", "Sensors",
            "Outbox", "Uplink", "Systemd", "EventLoop", "Configuration", "ControlProtocol", "Replay", "CLinux",
            logging,
        ]),
    // What is wrong with a host, from its files and a few values.
    module(
        "Doctor",
        ["JSON", "Positioning", "NMEA", "Delivery", "Sensors", "Configuration", "ControlProtocol", "CLinux"],
        isRare: true),
    module(
        "WaypostCLI",
        [
            "Agent", "Doctor", "JSON", "Positioning", "Delivery", "Live", "Outbox", "Uplink", "EventLoop",
            "Configuration", "ControlProtocol", "Replay", "Report", "NMEA", "Sensors", "CLinux", argumentParser,
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
            "JSON", "Positioning", argumentParser, "CZlib", "CPages",
            .product(name: "FlyingFox", package: "FlyingFox"), .product(name: "FlyingSocks", package: "FlyingFox"),
        ],
        path: "Sources/Collector", swiftSettings: strict),
    module("DriveSimulation", ["Positioning"]),
    // The whole daemon in a world that is made up: docs/architecture.md.
    shim("CSimDisk", linked: ["sqlite3"]),
    module(
        "Simworld",
        [
            "Agent", "Configuration", "EventLoop", "Positioning", "NMEA", "Tracking", "Delivery", "Live", "Channel",
            "Sensors", "Outbox", "Remote", "Uplink", "CSimDisk", "CSQLite", "DriveSimulation", logging,
        ]),
]

let daemonTests: [Target] = [
    .target(
        name: "TestSupport", dependencies: ["DriveSimulation", "Positioning"], path: "Tests/Support",
        swiftSettings: strict),
    .target(
        name: "ConfigurationTestSupport", dependencies: ["Configuration", "Positioning"],
        path: "Tests/ConfigurationSupport", swiftSettings: strict),
    tests("PositioningTests", ["Positioning"]),
    tests("JSONTests", ["JSON", "Positioning"]),
    tests("ControlProtocolTests", ["ControlProtocol", "JSON"]),
    tests("NMEATests", ["NMEA", "Positioning"]),
    tests("TrackingTests", ["Tracking", "Positioning", "NMEA", "DriveSimulation"]),
    tests("DeliveryTests", ["Delivery", "Live", "Positioning"]),
    tests("LiveTests", ["Live", "JSON", "Positioning"]),
    tests("ChannelTests", ["Channel", "JSON", "Positioning", "Tracking", "Delivery"]),
    tests("PlacesTests", ["Places", "Delivery", "Positioning", "Tracking"]),
    tests("RemoteTests", ["Remote", "JSON", "Positioning"]),
    tests("OutboxTests", ["Outbox", "Delivery", "Positioning"]),
    tests("SensorsTests", ["Sensors", "NMEA", "Positioning", "CLinux", "CUdev"]),
    tests("UplinkTests", ["Uplink", "Live", "Channel", "Tracking", "Delivery", "Positioning", "CLinux"]),
    tests("CollectorTests", ["waypost-collector", "JSON", .product(name: "FlyingFox", package: "FlyingFox")]),
    tests("SystemdTests", ["Systemd", logging]),
    tests("EventLoopTests", ["EventLoop", "Positioning", "CLinux"]),
    tests(
        "ConfigurationTests",
        [
            "Configuration", "ConfigurationTestSupport", "JSON", "Positioning", "NMEA", "Tracking", "Delivery",
            "Remote", "Sensors", "Outbox",
        ]),
    tests(
        "ReplayTests",
        [
            "Replay", "CLinux", "Configuration", "ConfigurationTestSupport", "EventLoop", "NMEA", "Positioning",
            "Sensors", "Tracking",
        ]),
    tests(
        "AgentTests",
        [
            "Agent", "Channel", "Configuration", "ConfigurationTestSupport", "ControlProtocol", "Delivery", "EventLoop",
            "JSON", "NMEA",
            "Outbox", "Places", "Positioning", "Remote", "Sensors", "Tracking", "Uplink", "WaypostCLI", logging,
        ]),
    tests(
        "ReportTests",
        ["Report", "Configuration", "ConfigurationTestSupport", "NMEA", "Positioning", "Replay", "Tracking"]),
    tests(
        "DoctorTests", ["Doctor", "Configuration", "ConfigurationTestSupport", "ControlProtocol", "Delivery", "JSON"]),
    tests(
        "WaypostCLITests",
        [
            "WaypostCLI", "Configuration", "ConfigurationTestSupport", "ControlProtocol", "Delivery", "Doctor",
            "Positioning", "Uplink", argumentParser,
        ]),
    tests("SystemTests", ["Positioning", "CSQLite"]),
    tests(
        "SimworldTests",
        ["Simworld", "Agent", "Configuration", "CSimDisk", "CSQLite", "Delivery", "Outbox", "Positioning", logging]),
]

let tools: [Target] = [
    tool("waypost-simulate", ["DriveSimulation", "Positioning"], path: "Sources/Simulator"),
    // How good decisions are, against the truth of simulated drives and in points and metres on recorded ones.
    module("Scoring", ["DriveSimulation", "NMEA", "Positioning", "Tracking"]),
    tool("waypost-score", ["Scoring", "DriveSimulation", "Positioning", "Tracking"], path: "Sources/Score"),
    // What ten thousand devices do to one server.
    module("Fleet", ["Delivery", "DriveSimulation", "Positioning"]),
    tool("waypost-fleet", ["Fleet"], path: "Sources/FleetCommand"),
    tool("waypost-simworld", ["Simworld", "CSimDisk"], path: "Sources/SimworldCommand"),

    tests("SimulationTests", ["DriveSimulation", "Positioning"]),
    tests("ScoringTests", ["Scoring", "DriveSimulation", "NMEA", "Positioning", "Tracking"]),
    tests("FleetTests", ["Fleet", "Delivery", "DriveSimulation", "Positioning"]),
    // Needs ../shared/corpus and ../shared/vectors; `.ci/run` and `make corpus` run it, `make test` does not.
    tests(
        "CorpusTests",
        [
            "NMEA", "Positioning", "Tracking", "Configuration", "Replay", "Scoring", "DriveSimulation", "Channel",
            "Delivery", "JSON",
        ],
        tables: ["Halts.tsv"]),
]

/// Executables of targets with the same name.
func executables(_ names: String...) -> [Product] { names.map { .executable(name: $0, targets: [$0]) } }

let package = Package(
    name: "waypost",
    products: [
        .library(name: "Positioning", targets: ["Positioning"]),
        .library(name: "NMEA", targets: ["NMEA"]),
        .library(name: "Tracking", targets: ["Tracking"]),
        .library(name: "JSON", targets: ["JSON"]),
        .library(name: "ControlProtocol", targets: ["ControlProtocol"]),
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
