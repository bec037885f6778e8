/// A value behind a pointer, copied when it changes while it is shared. An enum of large values is moved at each change, and copied
/// where one of them is looked at: of these it is only the pointer.
struct Boxed<Value: Sendable>: @unchecked Sendable {
    private final class Storage {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    init(_ value: Value) { storage = Storage(value) }

    var value: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
            yield &storage.value
        }
    }
}
