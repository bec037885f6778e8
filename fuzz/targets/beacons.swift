@testable import Places
@testable import WaypostCore

/// libFuzzer entry: whatever transmitters send, in whatever order with windows of scanning, other lists and restarts, ENTER and EXIT
/// of each region alternate, and a deadline that was reached does not come again.
///
/// The input is a script: a byte that chooses what is done next, and what it is done with.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzBeacons(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    var input = Input(data, size)
    var rig = Rig()
    while !input.isOver { rig.act(input.byte(), &input) }
    return 0
}

private let uuid = ProximityUUID([UInt8](0..<16))!
private let regions = [
    BeaconRegion(uuid: uuid), BeaconRegion(uuid: uuid, major: 1), BeaconRegion(uuid: uuid, major: 1, minor: 2),
    BeaconRegion(uuid: uuid, major: 3, name: "hall"),
]

private struct Rig {
    private var monitor = BeaconMonitor(regions)
    private var now = EventTime.zero
    private var inside: Set<String> = []

    mutating func act(_ choice: UInt8, _ input: inout Input) {
        switch choice & 7 {
        case 0: monitor.scanStarted(at: now)
        case 1: take(monitor.scanStopped(at: now))
        case 2: reachDeadline()
        case 3:
            let mask = input.byte()
            take(monitor.regionsChanged(regions.indices.filter { mask >> $0 & 1 == 1 }.map { regions[$0] }, at: now))
        case 4:
            let stored = monitor.stored
            monitor = BeaconMonitor(Array(regions.prefix(Int(input.byte() & 7))))
            take(monitor.resumed(stored, at: now))
        case 5: sight([0x02, 0x15] + [UInt8](0..<16) + [0, input.byte() & 3, 0, input.byte() & 3, 0xC5], input.byte())
        case 6: sight(input.bytes(Int(input.byte() & 31)), input.byte())
        default: now = now + .milliseconds(Int64(input.byte()) * 100)
        }
        demand(Set(monitor.inside.map(\.id)) == inside, "another presence than what was reported")
    }

    private mutating func sight(_ bytes: [UInt8], _ strength: UInt8) {
        guard let advertisement = BeaconAdvertisement(manufacturerData: bytes) else {
            return demand(bytes.count < 23 || !bytes.starts(with: [0x02, 0x15]), "an iBeacon is not read")
        }
        demand(Beacon(advertisement.beacon.description) == advertisement.beacon, "a name that does not lead back")
        take(monitor.sighted(advertisement, rssi: strength == 0 ? nil : -Int(strength), at: now))
        if let nearest = monitor.nearest(at: now) {
            demand(monitor.regions.contains { $0.contains(nearest) }, "a nearest beacon of no region")
        }
    }

    private mutating func reachDeadline() {
        guard let due = monitor.nextDeadline else { return }
        now = max(now, due)
        take(monitor.deadlineReached(at: now))
        demand(monitor.nextDeadline.map { $0 > now } ?? true, "a deadline that comes again")
    }

    private mutating func take(_ events: [BeaconMonitor.Event]) {
        for event in events {
            switch event {
            case .entered(let region): demand(inside.insert(region.id).inserted, "entered twice")
            case .left(let region, _): demand(inside.remove(region.id) != nil, "left twice")
            case .sighted(let beacon): demand(monitor.regions.contains { $0.contains(beacon) }, "no region's beacon")
            case .leftAll: demand(inside.isEmpty, "not all were left")
            }
        }
    }
}
