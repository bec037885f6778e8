/// What a device hears from a broker, behind the topic of the device.
package enum RemoteTopic: String, CaseIterable {
    case settings = "settings/desired"
    case commands = "cmd"
}
