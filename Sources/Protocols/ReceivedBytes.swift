/// Received bytes that are not understood yet. Appending and taking cost as much as the bytes, in whatever pieces they
/// come.
struct ReceivedBytes: Sendable {
    private var storage: [UInt8] = []
    private var start = 0
    /// What is given back to the system once it was used and is empty.
    private static let capacityKept = 16_384

    var count: Int { storage.count - start }

    /// - Parameter index: 0 ≤ index < `count`.
    subscript(index: Int) -> UInt8 { storage[start + index] }

    mutating func append(_ bytes: ArraySlice<UInt8>) {
        if start == storage.count {
            storage.removeAll(keepingCapacity: storage.capacity <= Self.capacityKept)
            start = 0
        } else if start > storage.count / 2 {
            // Moves fewer bytes than were taken since the last time.
            storage.removeFirst(start)
            start = 0
        }
        storage.append(contentsOf: bytes)
    }

    /// The next bytes, which are then gone.
    ///
    /// - Parameter length: 0 ≤ length ≤ `count`.
    mutating func take(_ length: Int) -> ArraySlice<UInt8> {
        defer { start += length }
        return storage[start..<(start + length)]
    }
}
