import Glibc

/// A speed that a serial line can be set to.
package struct LineSpeed: Hashable, Sendable, CustomStringConvertible {
    /// Bits per second.
    package let baud: Int
    let code: speed_t

    /// nil unless ``supported`` contains the speed.
    package init?(baud: Int) {
        guard let entry = Self.table.first(where: { $0.baud == baud }) else { return nil }
        self.baud = entry.baud
        code = entry.code
    }

    init?(code: speed_t) {
        guard let entry = Self.table.first(where: { $0.code == code }) else { return nil }
        self.baud = entry.baud
        self.code = code
    }

    /// All speeds that can be configured, in bits per second.
    package static let supported = table.map(\.baud)

    package var description: String { "\(baud) baud" }

    // The constants are signed in one release of glibc and not in another.
    private static let table: [(baud: Int, code: speed_t)] = [
        (1200, speed_t(B1200)), (2400, speed_t(B2400)), (4800, speed_t(B4800)), (9600, speed_t(B9600)),
        (19_200, speed_t(B19200)), (38_400, speed_t(B38400)), (57_600, speed_t(B57600)), (115_200, speed_t(B115200)),
        (230_400, speed_t(B230400)), (460_800, speed_t(B460800)), (500_000, speed_t(B500000)),
        (576_000, speed_t(B576000)), (921_600, speed_t(B921600)), (1_000_000, speed_t(B1000000)),
        (1_500_000, speed_t(B1500000)), (2_000_000, speed_t(B2000000)), (3_000_000, speed_t(B3000000)),
    ]
}
