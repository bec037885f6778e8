import Foundation

/// Where the seeds of random tests come from: constants, so that `make test` is the same test each time, or, under
/// `make explore`, fresh ones that are printed, and `SEED` where that is given.
private enum Exploration {
    private static let environment = ProcessInfo.processInfo.environment
    static let isOn = environment["WAYPOST_EXPLORE"] == "1"
    static let given = environment["SEED"].flatMap { UInt64($0) }

    static func seed(for test: String) -> UInt64 {
        let seed = given ?? UInt64.random(in: 0...999_999_999)
        print("explore: \(test) SEED=\(seed)")
        return seed
    }
}

/// - Parameter fixed: the seed of `make test`.
package func testSeed(_ fixed: UInt64, file: String = #fileID, test: String = #function) -> UInt64 {
    Exploration.isOn ? Exploration.seed(for: "\(file) \(test)") : fixed
}

/// For the arguments of a test: with as many seeds under `make explore`, or `SEED` alone.
/// - Parameter fixed: the seeds of `make test`.
package func testSeeds(_ fixed: some Collection<UInt64>, file: String = #fileID, line: Int = #line) -> [UInt64] {
    guard Exploration.isOn else { return Array(fixed) }
    if let given = Exploration.given { return [given] }
    return fixed.map { _ in Exploration.seed(for: "\(file):\(line)") }
}
