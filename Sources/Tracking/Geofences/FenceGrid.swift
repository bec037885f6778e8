import WaypostCore

/// Finds the fences whose bounds may hold a position, without asking all of them.
///
/// Three grids, of 0.00625°, 0.1° and 1.6°: a fence is in the cells of the finest one where it needs at most sixteen,
/// so that neither many small fences in a town nor large ones make long lists. Those too large for any of them, and all
/// when there are few, are `loose` and always asked.
struct FenceGrid: Sendable {
    private struct Level: Sendable {
        private let cell: Int64
        private let columns: Int64
        /// Sorted; the members of the cell `keys[n]` are `members[starts[n]..<starts[n + 1]]`.
        private var keys: [UInt32] = []
        private var starts: [Int32] = []
        private var members: [Int32] = []
        /// An asset stays in a cell for many fixes.
        private var lastKey: UInt32?
        private var lastRange = 0..<0

        init(cell: Int64, entries: inout [UInt64]) {
            self.cell = cell
            columns = FenceBounds.whole / cell
            entries.sort()
            members.reserveCapacity(entries.count)
            for entry in entries {
                let key = UInt32(truncatingIfNeeded: entry >> 32)
                if keys.last != key {
                    keys.append(key)
                    starts.append(Int32(members.count))
                }
                members.append(Int32(truncatingIfNeeded: entry))
            }
            starts.append(Int32(members.count))
        }

        mutating func visit(_ coordinate: Coordinate, _ body: (Int) -> Void) {
            for index in range(at: coordinate) { body(Int(members[index])) }
        }

        /// The members of the cell of the position, as a range of `members`.
        private mutating func range(at coordinate: Coordinate) -> Range<Int> {
            if keys.isEmpty { return 0..<0 }
            let row = (Int64(coordinate.latitudeE7) + 900_000_000) / cell
            let column = (Int64(coordinate.longitudeE7) + 1_800_000_000) / cell % columns
            let key = UInt32(truncatingIfNeeded: row * columns + column)
            if key == lastKey { return lastRange }
            var (low, high) = (0, keys.count)
            while low < high {
                let middle = (low + high) / 2
                if keys[middle] < key { low = middle + 1 } else { high = middle }
            }
            lastKey = key
            lastRange = low < keys.count && keys[low] == key ? Int(starts[low])..<Int(starts[low + 1]) : 0..<0
            return lastRange
        }
    }

    private static let cells: [Int64] = [62_500, 1_000_000, 16_000_000]
    private static let cellsMax: Int64 = 16

    private var levels: [Level] = []
    private var loose: [Int32] = []

    /// - Parameter above: up to this number of fences all are loose.
    init(_ bounds: [FenceBounds], above: Int) {
        guard bounds.count > above else {
            loose = bounds.indices.map { Int32($0) }
            return
        }
        var entries = Self.cells.map { _ in [UInt64]() }
        for (index, bounds) in bounds.enumerated() {
            let covered = Self.cells.map { Cover(bounds, cell: $0) }
            guard let level = covered.firstIndex(where: { $0.count <= Self.cellsMax }) else {
                loose.append(Int32(index))
                continue
            }
            for key in covered[level].keys { entries[level].append(key << 32 | UInt64(index)) }
        }
        for index in Self.cells.indices where !entries[index].isEmpty {
            levels.append(Level(cell: Self.cells[index], entries: &entries[index]))
        }
    }

    /// Passes on each fence whose bounds may contain a position.
    mutating func visit(_ coordinate: Coordinate, _ body: (Int) -> Void) {
        for index in levels.indices { levels[index].visit(coordinate, body) }
        for fence in loose { body(Int(fence)) }
    }

    /// The cells that a rectangle touches.
    private struct Cover {
        private let rows: ClosedRange<Int64>
        private let firstColumn: Int64
        private let columnCount: Int64
        private let columns: Int64

        init(_ bounds: FenceBounds, cell: Int64) {
            columns = FenceBounds.whole / cell
            rows = (Int64(bounds.south) + 900_000_000) / cell...(Int64(bounds.north) + 900_000_000) / cell
            let west = Int64(bounds.west) + 1_800_000_000
            firstColumn = west / cell
            columnCount = min(columns, (west + Int64(bounds.width)) / cell - firstColumn + 1)
        }

        var count: Int64 { Int64(rows.count) * columnCount }

        var keys: [UInt64] {
            rows.flatMap { row in
                (0..<columnCount).map { UInt64(row * columns + (firstColumn + $0) % columns) }
            }
        }
    }
}
