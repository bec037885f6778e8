extension Duration {
    /// Texts such as `30m`, `1h30m` and `90s`; nil for all others. Units are s, m, h and d.
    init?(remoteText text: String) {
        var (total, number) = (Int64(0), Int64?.none)
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard !text.isEmpty, text.utf8.count <= 20 else { return nil }
        for character in text {
            if character.isASCII, let digit = character.wholeNumberValue {
                let next = (number ?? 0) * 10 + Int64(digit)
                guard next <= 1_000_000_000 else { return nil }
                number = next
            } else {
                guard let unit = units[character], let count = number else { return nil }
                total += count * unit
                number = nil
            }
        }
        guard number == nil else { return nil }
        self = .seconds(total)
    }
}
