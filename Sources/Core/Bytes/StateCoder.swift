/// Writes what must survive a restart in few bytes, or reads it back: one list of members serves both.
///
/// Integers are zigzag varints (7 bits a byte, least significant first), doubles their 8 bytes, text and lists follow
/// their count. The bytes do not name the members: a change of their list needs a new version.
package struct StateCoder {
    /// What was written, or what is read.
    package private(set) var bytes: [UInt8]
    private let isReading: Bool
    private var position = 0
    /// The bytes were not what the members need.
    private var isDamaged = false

    /// The bytes of a value.
    package static func bytes(of value: some StateCoded) -> [UInt8] {
        var coder = StateCoder(bytes: [], isReading: false)
        coder.bytes.reserveCapacity(256)
        var value = value
        value.code(&coder)
        return coder.bytes
    }

    /// The value that these bytes encode; nil unless they encode exactly one.
    package static func value<Value: StateCoded>(_ bytes: [UInt8], as blank: Value) -> Value? {
        var coder = StateCoder(bytes: bytes, isReading: true)
        var value = blank
        value.code(&coder)
        return coder.isDamaged || coder.position != bytes.count ? nil : value
    }

    private init(bytes: [UInt8], isReading: Bool) {
        self.bytes = bytes
        self.isReading = isReading
    }

    package mutating func code(_ value: inout UInt64) {
        guard isReading else {
            var rest = value
            while rest > 0x7F {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            return bytes.append(UInt8(rest))
        }
        value = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            let byte = nextByte()
            value |= UInt64(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return }
        }
        isDamaged = true
    }

    package mutating func code(_ value: inout Int64) {
        var zigzag = UInt64(bitPattern: (value << 1) ^ (value >> 63))
        code(&zigzag)
        value = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }

    package mutating func code(_ value: inout Int) {
        var wide = Int64(value)
        code(&wide)
        value = Int(clamping: wide)
    }

    package mutating func code(_ value: inout Bool) {
        guard isReading else { return bytes.append(value ? 1 : 0) }
        value = nextByte() != 0
    }

    package mutating func code(_ value: inout Double) {
        guard isReading else {
            var bits = value.bitPattern
            for _ in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: bits))
                bits >>= 8
            }
            return
        }
        var bits: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bits |= UInt64(nextByte()) << shift }
        value = Double(bitPattern: bits)
        if !value.isFinite { isDamaged = true }
    }

    package mutating func code(_ value: inout String) {
        var count = value.utf8.count
        code(&count)
        guard isReading else { return bytes.append(contentsOf: value.utf8) }
        guard count >= 0, count <= bytes.count - position,
            let text = String(validating: bytes[position..<position + count], as: UTF8.self)
        else { return isDamaged = true }
        value = text
        position += count
    }

    package mutating func code<Value: StateCoded>(_ value: inout Value) { value.code(&self) }

    package mutating func code<Value: StateCoded>(_ value: inout Value?) {
        var isThere = value != nil
        code(&isThere)
        guard isThere, !isDamaged else { return value = nil }
        var some = value ?? Value.blank
        some.code(&self)
        value = some
    }

    package mutating func code<Value: StateCoded>(_ values: inout [Value]) {
        var count = values.count
        code(&count)
        guard isReading else {
            for index in values.indices { values[index].code(&self) }
            return
        }
        values = []
        // A value has at least one byte, so a damaged count cannot ask for more than there is.
        guard count >= 0, count <= bytes.count - position else { return isDamaged = true }
        while values.count < count, !isDamaged {
            var value = Value.blank
            value.code(&self)
            values.append(value)
        }
    }

    private mutating func nextByte() -> UInt8 {
        guard position < bytes.count else {
            isDamaged = true
            return 0
        }
        defer { position += 1 }
        return bytes[position]
    }
}

/// A value that `StateCoder` writes and reads: `code` names its members in a fixed order.
package protocol StateCoded {
    /// Any value, which reading overwrites.
    static var blank: Self { get }
    mutating func code(_ coder: inout StateCoder)
}

extension Bool: StateCoded {
    package static var blank: Bool { false }
    package mutating func code(_ coder: inout StateCoder) { coder.code(&self) }
}

extension Int: StateCoded {
    package static var blank: Int { 0 }
    package mutating func code(_ coder: inout StateCoder) { coder.code(&self) }
}

extension Double: StateCoded {
    package static var blank: Double { 0 }
    package mutating func code(_ coder: inout StateCoder) { coder.code(&self) }
}

extension String: StateCoded {
    package static var blank: String { "" }
    package mutating func code(_ coder: inout StateCoder) { coder.code(&self) }
}

extension UTCTime: StateCoded {
    package static var blank: UTCTime { UTCTime(milliseconds: 0) }
    package mutating func code(_ coder: inout StateCoder) { coder.code(&milliseconds) }
}

extension Coordinate: StateCoded {
    package static var blank: Coordinate { Coordinate(latitudeE7: 0, longitudeE7: 0) }
    package mutating func code(_ coder: inout StateCoder) {
        var (latitude, longitude) = (Int64(latitudeE7), Int64(longitudeE7))
        coder.code(&latitude)
        coder.code(&longitude)
        self = Coordinate(latitudeE7: Int32(clamping: latitude), longitudeE7: Int32(clamping: longitude))
    }
}

extension PowerState: StateCoded {
    package static var blank: PowerState { PowerState() }
    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&batteryPercent)
        coder.code(&charging)
        coder.code(&externalPower)
    }
}
