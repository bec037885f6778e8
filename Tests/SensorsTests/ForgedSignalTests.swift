import Foundation
import TestSupport
import Testing
import WaypostCore

@testable import Sensors

/// BlueZ and NetworkManager on a real bus, beside a client that says what they would say.
@Suite(.serialized, .waiting, .enabled(if: access("/usr/bin/dbus-daemon", X_OK) == 0)) struct ForgedSignalTests {
    private static let properties = "org.freedesktop.DBus.Properties"
    private static let adapter = "/org/bluez/hci0"
    private static let beacon = "/org/bluez/hci0/dev_AA"
    private static let bluez = "org.bluez"
    private static let networkManager = "org.freedesktop.NetworkManager"
    private static let wireless = "\(networkManager).Device.Wireless"

    private let bus: TestBus

    init() throws { bus = try TestBus() }

    /// Both sides take their turns until `done`.
    private func run(
        _ services: [BusPeer], _ process: () -> Void, until done: () throws -> Bool
    ) throws -> Bool {
        let found = try eventually(within: 5, every: 2000) { () -> Bool? in
            for service in services { try service.serve() }
            process()
            return try done() ? true : nil
        }
        return found == true
    }

    private func bluetooth() throws -> BusPeer {
        let service = try BusPeer(owning: Self.bluez)
        service.answer = { call in
            guard call.member == "GetManagedObjects" else { return [] }
            let adapter = BusValue.dictionary(
                "sa{sv}", [(.text("org.bluez.Adapter1"), .properties([("Powered", .flag(true))]))])
            return [.dictionary("oa{sa{sv}}", [(.path(Self.adapter), adapter)])]
        }
        return service
    }

    /// - Parameter rssi: tells one sighting from another.
    private func sight(_ peer: BusPeer, rssi: Int16, to destination: String? = nil) throws {
        let data = [2, 0x15] + [UInt8](repeating: 7, count: 16) + [0, 1, 0, 2, 0xC5]
        let properties = BusValue.properties([
            ("ManufacturerData", .dictionary("qv", [(.uint16(0x4C), .variant(.bytes(data)))])), ("RSSI", .int16(rssi)),
        ])
        try peer.signal(
            Self.beacon, Self.properties, "PropertiesChanged", to: destination, .text("org.bluez.Device1"), properties,
            .texts([]))
    }

    /// Says in the place of the bus that another connection owns a name.
    private func pretend(_ peer: BusPeer, _ name: String, isOwnedBy owner: String, to destination: String) throws {
        try peer.signal(
            "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", to: destination, .text(name),
            .text(""),
            .text(owner))
    }

    @Test func aSightingCountsFromBlueZAlone() throws {
        var service: BusPeer? = try bluetooth()
        let forger = try BusPeer()
        let scanner = BluetoothScanner()
        var seen: [Int?] = []
        func process() {
            for case .sighted(_, let rssi) in scanner.process(at: .zero) { seen.append(rssi) }
        }
        func reaches(_ state: BluetoothScanner.State) throws -> Bool {
            try run([service].compactMap(\.self), process) { scanner.state == state }
        }
        _ = scanner.setScanning(true, at: .zero)
        #expect(try reaches(.scanning))
        let own = try #require(service?.calls.last?.sender)

        try sight(forger, rssi: -1, to: own)
        try forger.signal(Self.adapter, Self.bluez, "InterfacesRemoved", to: own, .path(Self.adapter), .texts([]))
        try pretend(forger, Self.bluez, isOwnedBy: forger.name, to: own)
        try sight(forger, rssi: -2, to: own)
        try forger.ask("GetId")
        try service.map { try sight($0, rssi: -70) }
        #expect(try run([forger], process) { seen.last == -70 })
        #expect(seen == [-70] && scanner.state == .scanning && forger.calls.isEmpty)

        // It is the bus that says that the service has gone, and is back.
        service = nil
        #expect(try reaches(.waiting("bluetoothd is not running")))
        #expect(scanner.nextDeadline(at: .zero) == nil, "nothing is asked meanwhile")
        try pretend(forger, Self.bluez, isOwnedBy: forger.name, to: own)
        try sight(forger, rssi: -3, to: own)
        try forger.ask("GetId")
        service = try bluetooth()
        #expect(try reaches(.scanning))
        #expect(seen == [-70] && forger.calls.isEmpty)
        scanner.stop()
    }

    @Test func aNetworkIsThatOfNetworkManagerAlone() throws {
        let forger = try BusPeer()
        let watch = NetworkManagerWatch()
        func process() { watch.process(at: .zero) }
        // Nobody else is on this bus.
        let own = ":1.1"
        #expect(forger.name == ":1.0")
        #expect(try run([], process) { try forger.ask("GetNameOwner", .text(own)).text == own })
        try pretend(forger, Self.networkManager, isOwnedBy: forger.name, to: own)
        try forger.ask("GetId")

        let service = try BusPeer(owning: Self.networkManager)
        var point = "North"
        service.answer = { _ in
            let device = BusValue.dictionary(
                "sa{sv}", [(.text(Self.wireless), .properties([("ActiveAccessPoint", .path("/ap/\(point)"))]))])
            let points = ["North", "South"].map { name -> (BusValue, BusValue) in
                let known = BusValue.properties([
                    ("Ssid", .bytes(Array(name.utf8))), ("HwAddress", .text("AA:\(name)")),
                ])
                return (
                    .path("/ap/\(name)"),
                    .dictionary("sa{sv}", [(.text("\(Self.networkManager).AccessPoint"), known)])
                )
            }
            return [.dictionary("oa{sa{sv}}", [(.path("/device"), device)] + points)]
        }
        func finds(_ name: String) throws -> Bool {
            try run([service, forger], process) { watch.association?.ssid == name }
        }
        #expect(try finds("North"))
        #expect(service.calls.map(\.sender) == [own])

        func change(_ peer: BusPeer, to destination: String? = nil) throws {
            let changed = BusValue.properties([("ActiveAccessPoint", .path("/ap/South"))])
            try peer.signal(
                "/device", Self.properties, "PropertiesChanged", to: destination, .text(Self.wireless), changed,
                .texts([]))
        }
        point = "South"
        try change(forger, to: own)
        try pretend(forger, Self.networkManager, isOwnedBy: "", to: own)
        // The bus passes on no answer that was not asked for.
        for call in 1...20 {
            try forger.send(
                BusPeer.Message(kind: .answer, answers: UInt32(call), destination: own, body: [.text(forger.name)]))
        }
        try forger.ask("GetId")
        try service.ask("GetId")
        process()
        #expect(watch.association?.ssid == "North" && service.calls.count == 1)
        try change(service)
        #expect(try finds("South"))
        #expect(service.calls.count == 2 && forger.calls.isEmpty)
        watch.stop()
    }
}
