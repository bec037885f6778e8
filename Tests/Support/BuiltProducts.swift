import Foundation

/// The executables of the build that the running test belongs to.
package enum BuiltProducts {
    /// - Throws: when the product was not built.
    package static func executable(_ name: String) throws -> URL {
        let url = try directory().appendingPathComponent(name)
        guard FileManager.default.isExecutableFile(atPath: url.path) else { throw NotBuilt(product: name) }
        return url
    }

    /// The folder of the test bundle, which the loader has mapped.
    private static func directory() throws -> URL {
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        for line in maps.split(separator: "\n") where line.hasSuffix(".xctest") {
            guard let slash = line.firstIndex(of: "/") else { continue }
            return URL(fileURLWithPath: String(line[slash...])).deletingLastPathComponent()
        }
        throw NotBuilt(product: "test bundle")
    }

    /// The top of the repository, found from this file.
    package static var repository: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    package struct NotBuilt: Error, CustomStringConvertible {
        let product: String
        package var description: String { "\(product) was not built" }
    }
}
