import Delivery
import JSON
import Positioning

extension StatusReport {
    /// As records carry it, and which supplies it comes from.
    func power(_ writer: inout JSONWriter) {
        let snapshot = pipeline.tracker.snapshot
        writer.key("power")
        writer.beginObject()
        writer.field("battery", snapshot.power.batteryPercent)
        writer.field("charging", snapshot.power.charging)
        writer.field("external", snapshot.power.externalPower)
        writer.field("low", snapshot.batteryLow)
        if let supplies {
            writer.key("supplies")
            writer.beginObject()
            for supply in supplies {
                writer.key(supply.name)
                writer.value(supply.words)
            }
            writer.endObject()
        }
        writer.endObject()
    }
}
