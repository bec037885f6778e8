/// Names of hosts with letters beyond ASCII, in the form that the DNS knows (RFC 3492).
enum Punycode {
    private static let (base, tMin, tMax, skew, damp) = (36, 1, 26, 38, 700)
    private static let labelBytesMax = 63

    /// - Parameter name: labels with dots. Capitals become small letters; nothing else is normalised.
    /// - Returns: nil where a label would be too long or is empty.
    static func host(_ name: String) -> String? {
        var labels: [String] = []
        for label in name.lowercased().split(separator: ".", omittingEmptySubsequences: false) {
            let isPlain = label.utf8.allSatisfy { $0 < 0x80 }
            let encoded = isPlain ? String(label) : "xn--\(encode(label.unicodeScalars.map { Int($0.value) }))"
            guard (1...labelBytesMax).contains(encoded.utf8.count) else { return nil }
            labels.append(encoded)
        }
        return labels.joined(separator: ".")
    }

    private static func encode(_ input: [Int]) -> String {
        var output = input.filter { $0 < 0x80 }.map { UInt8($0) }
        let basic = output.count
        if basic > 0 { output.append(UInt8(ascii: "-")) }
        var (n, delta, bias, handled) = (0x80, 0, 72, basic)
        while handled < input.count {
            let next = input.filter { $0 >= n }.min() ?? n
            delta += (next - n) * (handled + 1)
            n = next
            for value in input {
                if value < n { delta += 1 }
                guard value == n else { continue }
                var (q, k) = (delta, base)
                while true {
                    let t = k <= bias ? tMin : min(k - bias, tMax)
                    guard q >= t else { break }
                    output.append(digit(t + (q - t) % (base - t)))
                    q = (q - t) / (base - t)
                    k += base
                }
                output.append(digit(q))
                bias = adapted(delta, handled + 1, isFirst: handled == basic)
                (delta, handled) = (0, handled + 1)
            }
            (delta, n) = (delta + 1, n + 1)
        }
        return String(decoding: output, as: UTF8.self)
    }

    private static func digit(_ value: Int) -> UInt8 { UInt8(value < 26 ? value + 0x61 : value - 26 + 0x30) }

    private static func adapted(_ delta: Int, _ count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / count
        var k = 0
        while delta > (base - tMin) * tMax / 2 {
            delta /= base - tMin
            k += base
        }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }
}
