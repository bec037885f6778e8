/// What records say of the networks around; nothing by default.
package struct ContextConfig: Hashable, Sendable {
    /// Who knows which Wi-Fi network is used; nil = it is not asked for.
    package var wifi: WiFi?
    /// The address of this host on the route out.
    package var hasAddress = false

    package enum WiFi: Hashable, Sendable {
        case networkManager
        /// The folder of its control sockets.
        case supplicant(folder: String)
    }

    package init() {}

    init(reading table: TableReader) {
        enum Source: CaseIterable { case off, networkManager, supplicant }
        var source = Source.off
        table.read(
            "wifi", into: &source,
            as: .word([("off", .off), ("networkmanager", .networkManager), ("wpa", .supplicant)]))
        var folder = "/run/wpa_supplicant"
        table.read("wpa_folder", into: &folder, as: .absolutePath("the control sockets of wpa_supplicant"))
        table.read("ip", into: &hasAddress, as: .flag)
        switch source {
        case .off: wifi = nil
        case .networkManager: wifi = .networkManager
        case .supplicant: wifi = .supplicant(folder: folder)
        }
    }
}
