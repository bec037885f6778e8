import NMEA
import Positioning
import Sensors

/// Where the fixes come from.
public enum SourceConfig: Sendable {
    case serial(SerialSettings)
    case gpsd(GPSDSettings)
    case file(FileSettings)
    case tcp(TCPSettings)
    case udp(UDPSettings)
}
