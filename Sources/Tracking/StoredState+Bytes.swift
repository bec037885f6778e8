import WaypostCore

extension StoredState {
    /// As it is kept in the queue: some 150 bytes, so that it fits on one small page beside the queue's other marks.
    public var bytes: [UInt8] { StateCoder.bytes(of: self) }

    /// nil when the bytes are damaged, or of another format.
    public init?(bytes: [UInt8]) {
        guard let state = StateCoder.value(bytes, as: StoredState.blank),
            (Self.versionMin...Self.version).contains(state.version)
        else { return nil }
        self = state
        version = Self.version
    }
}

// The members in the order in which they are stored. A change of a list is another `StoredState.version`.

extension StoredState: StateCoded {
    package static var blank: StoredState { StoredState() }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&version)
        coder.code(&moving)
        coder.code(&announced)
        coder.code(&anchor)
        coder.code(&fenceCentre)
        coder.code(&since)
        coder.code(&stopping)
        coder.code(&lastFix)
        coder.code(&odometer)
        coder.code(&gapMetres)
        coder.code(&trip)
        coder.code(&lastGap)
        coder.code(&power)
        coder.code(&released)
        coder.code(&recorded)
        coder.code(&fenceSet)
        coder.code(&stays)
        if version >= 4 { coder.code(&lowBatteryRecorded) }
        if version >= 5 { for index in stays.indices { stays[index].codeNames(&coder) } }
        if version >= 6 { coder.code(&unplacedEntries) }
    }
}

extension StoredState.Anchor: StateCoded {
    package static var blank: Self { Self(coordinate: .blank, accuracy: nil) }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&coordinate)
        coder.code(&accuracy)
    }
}

extension StoredState.LastFix: StateCoded {
    package static var blank: Self {
        Self(time: .blank, coordinate: .blank, accuracy: nil, altitudeMSL: nil, altitudeHAE: nil)
    }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&time)
        coder.code(&coordinate)
        coder.code(&accuracy)
        coder.code(&altitudeMSL)
        coder.code(&altitudeHAE)
    }
}

extension StoredState.Trip: StateCoded {
    package static var blank: Self {
        Self(start: .blank, startCoordinate: .blank, startOdometer: 0, idle: 0, maxSpeed: nil)
    }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&start)
        coder.code(&startCoordinate)
        coder.code(&startOdometer)
        coder.code(&idle)
        coder.code(&maxSpeed)
        coder.code(&withoutPower)
    }
}

extension StoredState.Recorded: StateCoded {
    package static var blank: Self {
        Self(trackable: "", time: .blank, selectedTime: .blank, selectedCoordinate: .blank)
    }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&trackable)
        coder.code(&time)
        coder.code(&selectedTime)
        coder.code(&selectedCoordinate)
        coder.code(&proximity)
    }
}

extension StoredState.Stay: StateCoded {
    package static var blank: Self {
        Self(fence: "", revision: 0, entered: .blank, isRecorded: false, dwelled: false)
    }

    package mutating func code(_ coder: inout StateCoder) {
        coder.code(&fence)
        var number = UInt64(revision) << 2 | (isRecorded ? 2 : 0) | (dwelled ? 1 : 0)
        coder.code(&number)
        revision = UInt32(truncatingIfNeeded: number >> 2)
        isRecorded = number & 2 != 0
        dwelled = number & 1 != 0
        coder.code(&entered)
    }

    fileprivate mutating func codeNames(_ coder: inout StateCoder) {
        var text = name ?? ""
        coder.code(&text)
        name = text.isEmpty ? nil : text
        var count = fence.count(before: serverID)
        coder.code(&count)
        serverID = fence.end(after: count)
    }
}
