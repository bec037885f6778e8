/// The version of the protocol; the raw value is what CONNECT calls it.
package enum MQTTVersion: UInt8, Hashable, Sendable {
    /// 3.1.1
    case v3 = 4
    case v5 = 5
}
