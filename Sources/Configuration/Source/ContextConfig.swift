/// What records say of the networks around; nothing by default.
public struct ContextConfig: Hashable, Sendable {
    /// Who knows which Wi-Fi network is used; nil = it is not asked for.
    public var wifi: WiFi?
    /// The address of this host on the route out.
    public var hasAddress = false

    public enum WiFi: Hashable, Sendable {
        case networkManager
        /// The folder of its control sockets.
        case supplicant(folder: String)
    }

    public init() {}

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
