/// What a receiver may report. A number beyond it is a defect of the line, and not used.
package enum ReceiverRange {
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
