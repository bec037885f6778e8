import Glibc

/// Reads /sys/class/power_supply, or a folder that looks like it.
public struct PowerSupplyReader: Sendable {
    /// More entries than any board has.
    private static let suppliesMax = 32
    private static let bytesMax = 64

    public let root: String
    public let selection: PowerSupplies.Selection

    /// - Parameter root: `/sys/class/power_supply`
    public init(root: String, selection: PowerSupplies.Selection = .init()) {
        self.root = root
        self.selection = selection
    }

    /// What is there now; empty where there is no such folder.
    public func read() -> PowerSupplies {
        let supplies = names().filter { !selection.ignored.contains($0) }.map { name in
            PowerSupply(name: name, isWanted: selection.wants(name)) { attribute($0, of: name) }
        }
        return PowerSupplies(supplies, selection: selection)
    }

    private func names() -> [String] {
        guard let folder = opendir(root) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while names.count < Self.suppliesMax, let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }

    private func attribute(_ file: String, of name: String) -> PowerSupply.Attribute {
        let descriptor = open("\(root)/\(name)/\(file)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return errno == ENOENT || errno == ENOTDIR ? .absent : .unreadable }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.bytesMax) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            return count < 0 ? .unreadable : .text(Array(buffer[..<count]))
        }
    }
}
