import Foundation
import Testing

/// Makes every descriptor of this file useless for writing, as a failing medium does.
func breakDescriptors(of path: String) throws {
    let void = open("/dev/null", O_RDONLY | O_CLOEXEC)
    defer { close(void) }
    var broken = 0
    let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
    for descriptor in names.compactMap({ Int32($0) }) {
        var target = [UInt8](repeating: 0, count: 512)
        let count = target.withUnsafeMutableBytes {
            readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        guard count > 0, String(decoding: target[..<count], as: UTF8.self) == path else { continue }
        dup2(void, descriptor)
        broken += 1
    }
    try #require(broken > 0)
}
