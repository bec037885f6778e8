import Delivery
import JSON
import NMEA
import Sensors

extension GPSDSource {
    /// Names of many devices would fill the frame.
    private static let devicesMax = 8

    /// The member `gpsd` of the source in the reply to `status`, while connected.
    func write(to writer: inout JSONWriter) {
        guard let version else { return }
        writer.key("gpsd")
        writer.beginObject()
        writer.field("release", version.release)
        writer.field("protocol", version.protocolVersion)
        writer.field("device", device)
        writer.key("devices")
        writer.beginArray()
        for device in devices.prefix(Self.devicesMax) {
            writer.beginObject()
            writer.field("path", device.path)
            writer.field("driver", device.driver)
            writer.field("active", device.isActive)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}
