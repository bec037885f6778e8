import Glibc

/// A speed that a serial line can be set to.
public struct LineSpeed: Hashable, Sendable, CustomStringConvertible {
    /// Bits per second.
    public let baud: Int
    let code: speed_t

    /// nil unless ``supported`` contains the speed.
    public init?(baud: Int) {
        guard let entry = Self.table.first(where: { $0.baud == baud }) else { return nil }
        self.baud = entry.baud
        code = speed_t(entry.code)
    }

    init?(code: speed_t) {
        guard let entry = Self.table.first(where: { speed_t($0.code) == code }) else { return nil }
        self.baud = entry.baud
        self.code = code
    }

    /// All speeds that can be configured, in bits per second.
    public static let supported = table.map(\.baud)

    public var description: String { "\(baud) baud" }

    private static let table: [(baud: Int, code: Int32)] = [
        (1200, B1200), (2400, B2400), (4800, B4800), (9600, B9600), (19_200, B19200),
        (38_400, B38400), (57_600, B57600), (115_200, B115200), (230_400, B230400),
        (460_800, B460800), (500_000, B500000), (576_000, B576000), (921_600, B921600),
        (1_000_000, B1000000), (1_500_000, B1500000), (2_000_000, B2000000),
        (3_000_000, B3000000),
    ]
}
