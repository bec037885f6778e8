import Foundation

/// A program in Python of the documentation, as a reader would use it.
package enum PublishedProgram {
    /// What the last program of `page` prints of `input`: a JSON object per line.
    package static func rows(of page: String, _ input: String) throws -> [[String: Any]] {
        let folder = try TemporaryDirectory()
        try folder.write("input", input)
        return try rows(of: page, path: "\(folder.path)/input")
    }

    /// - Parameter path: of the file that it reads.
    package static func rows(of page: String, path: String) throws -> [[String: Any]] {
        let text = try String(contentsOf: BuiltProducts.repository.appendingPathComponent(page), encoding: .utf8)
        let blocks = text.components(separatedBy: "```python\n")
        guard blocks.count > 1, let program = blocks.last?.components(separatedBy: "```").first else {
            throw Failed(what: "\(page) has no program")
        }
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", program, path]
        process.standardOutput = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failed(what: "the program of \(page) ended with \(process.terminationStatus)")
        }
        return try String(decoding: printed, as: UTF8.self).split(separator: "\n").map { line in
            guard let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
                throw Failed(what: "no object: \(line)")
            }
            return row
        }
    }

    private struct Failed: Error, CustomStringConvertible {
        let what: String
        var description: String { what }
    }
}
