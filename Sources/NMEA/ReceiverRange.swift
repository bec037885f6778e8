/// What a receiver may report. A number beyond it is a defect of the line, and not used.
package enum ReceiverRange {
    /// Since 1970-01-01: 1980, when the time of GPS begins, to 2079. Clocks that count over give 1901 or 2106.
    package static let days = 3652...40_176
    /// Metres; 0 stands for "not known".
    package static let accuracy = 1e-6...1e7
    /// Metres, from below the deepest sea to far above all satellites.
    package static let altitude = -1e5...1e8
    /// Degrees true.
    package static let course = 0.0...360
    package static let dilution = 1e-6...1e6
    /// Metres a second.
    package static let speed = 0.0...51_500
}
