import WaypostCore

/// The newest elements, oldest first, in storage that grows to a limit and is then used again.
struct RingBuffer<Element: Sendable>: Sendable {
    private var storage: ContiguousArray<Element> = []
    private var head = 0
    private(set) var count = 0
    let countMax: Int

    /// - Parameter countMax: appending to a buffer with this many elements drops the oldest.
    init(countMax: Int) { self.countMax = max(1, countMax) }
    var isEmpty: Bool { count == 0 }
    var last: Element? { count > 0 ? self[count - 1] : nil }

    /// 0 is the oldest element.
    subscript(index: Int) -> Element {
        get { storage[slot(index)] }
        set { storage[slot(index)] = newValue }
    }

    mutating func append(_ element: Element) {
        if count < storage.count {
            storage[slot(count)] = element
            count += 1
        } else if count < countMax {
            straighten()
            storage.append(element)
            count += 1
        } else {
            storage[head] = element
            head = head + 1 == storage.count ? 0 : head + 1
        }
    }

    mutating func removeFirst(_ number: Int = 1) {
        head = slot(min(number, count))
        count -= min(number, count)
        if count == 0 { head = 0 }
    }

    mutating func removeAll() {
        head = 0
        count = 0
    }

    private func slot(_ index: Int) -> Int {
        let slot = head + index
        return slot < storage.count ? slot : slot - storage.count
    }

    /// Before the storage grows, the oldest element must be at its beginning.
    private mutating func straighten() {
        guard head != 0 else { return }
        storage = ContiguousArray(storage[head...] + storage[..<head])
        head = 0
    }
}

extension RingBuffer {
    /// What holds between two calls.
    func checkInvariants() {
        invariant(count >= 0 && count <= countMax, "\(count) elements in a ring of \(countMax)")
        invariant(count <= storage.count && storage.count <= countMax, "\(count) elements in \(storage.count) places")
        invariant(head == 0 || head < storage.count, "it begins at \(head) of \(storage.count)")
    }
}
