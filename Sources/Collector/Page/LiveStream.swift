import FlyingSocks

/// Events as the body of a response that does not end by itself.
struct LiveStream: AsyncBufferedSequence {
    typealias Element = UInt8

    let reader: LiveReader

    func makeAsyncIterator() -> Iterator { Iterator(reader: reader) }

    struct Iterator: AsyncBufferedIteratorProtocol {
        let reader: LiveReader

        mutating func next() async -> UInt8? { nil }

        /// Whole events, however many bytes are suggested: they are taken from the history only when the connection
        /// has taken those before, so that a page that does not read costs nothing.
        mutating func nextBuffer(suggested count: Int) async -> [UInt8]? { await reader.next() }
    }
}
