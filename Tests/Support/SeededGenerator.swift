import DriveSimulation

/// A small seeded generator, so that a failing random test can be repeated from the seed that it prints.
public typealias SeededGenerator = SplitMix64
