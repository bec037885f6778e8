import Glibc
import WaypostCore
import WaypostHost

/// Reads /sys/class/power_supply, or a folder that looks like it.
///
/// Which supplies there are is known at once. A file of one may be a transfer on a bus: fuel gauges on I²C take 10 to
/// 500 ms for each, and on a broken bus a read may never end. `PowerSupplySurvey` reads them on other threads.
package struct PowerSupplyReader: Sendable {
    /// More entries than any board has.
    private static let suppliesMax = 32
    private static let bytesMax = 64

    package let root: String
    package let selection: PowerSupplies.Selection

    /// - Parameter root: `/sys/class/power_supply`
    package init(root: String, selection: PowerSupplies.Selection = .init()) {
        self.root = root
        self.selection = selection
    }

    /// Those that may count, in no order; empty where there is no such folder.
    package func names() -> [String] { folders().filter { !selection.ignored.contains($0) } }

    /// Blocks for as long as its driver does.
    package func read(_ name: String) -> PowerSupply {
        PowerSupply(name: name, isWanted: selection.wants(name)) { attribute($0, of: name) }
    }

    private func folders() -> [String] {
        (folderNames(root, limit: Self.suppliesMax) ?? []).filter { !$0.hasPrefix(".") }
    }

    private func attribute(_ file: String, of name: String) -> PowerSupply.Attribute {
        let descriptor = open("\(root)/\(name)/\(file)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno == ENOENT || errno == ENOTDIR ? .absent : .unreadable }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.bytesMax) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            return count < 0 ? .unreadable : .text(Array(buffer[..<count]))
        }
    }
}
