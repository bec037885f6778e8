import DriveSimulation

/// A small seeded generator, so that a failing random test can be repeated from the seed that it prints.
package typealias SeededGenerator = SplitMix64
