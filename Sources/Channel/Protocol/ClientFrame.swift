import WaypostCore

/// A frame that we send.
package enum ClientFrame: Hashable, Sendable, CustomStringConvertible {
    /// - Parameter serial: up to where we have the channel; nil = from now on.
    case attach(channel: String, serial: String?)
    case detach(channel: String)
    /// - Parameter id: of the member that is confirmed; nil = none.
    case presence(channel: String, serial: Int64, PresenceAction, id: String?, data: String)
    case message(channel: String, serial: Int64, ChannelMessage)
    case close
    case authorize(token: ChannelSecret)

    /// PRESENCE, PUBLISH and PRESENCE_SUBSCRIBE. With SUBSCRIBE we would receive our own messages.
    package static let attachFlags: Int64 = 1 << 16 | 1 << 17 | 1 << 19

    /// One JSON object, which may contain a secret.
    package var text: String {
        var writer = JSONWriter(reserving: 200)
        writer.beginObject()
        writer.field("action", action.rawValue)
        switch self {
        case .attach(let channel, let serial):
            writer.field("channel", channel)
            writer.field("flags", Self.attachFlags)
            writer.field("channelSerial", serial)
        case .detach(let channel): writer.field("channel", channel)
        case .presence(let channel, let serial, let action, let id, let data):
            writer.field("channel", channel)
            writer.field("msgSerial", serial)
            writer.key("presence")
            writer.beginArray()
            writer.beginObject()
            writer.field("action", action.rawValue)
            writer.field("id", id)
            writer.field("data", data)
            writer.endObject()
            writer.endArray()
        case .message(let channel, let serial, let message):
            writer.field("channel", channel)
            writer.field("msgSerial", serial)
            writer.key("messages")
            writer.beginArray()
            message.write(to: &writer)
            writer.endArray()
        case .close: break
        case .authorize(let token):
            writer.key("auth")
            writer.beginObject()
            writer.field("accessToken", token.revealed)
            writer.endObject()
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private var action: FrameAction {
        switch self {
        case .attach: .attach
        case .detach: .detach
        case .presence: .presence
        case .message: .message
        case .close: .close
        case .authorize: .authorize
        }
    }

    /// For logs: what it is, without data.
    package var description: String {
        switch self {
        case .attach(let channel, _), .detach(let channel): "\(action) \(channel)"
        case .presence(let channel, let serial, let kind, _, _): "\(action) \(serial) \(kind) \(channel)"
        case .message(let channel, let serial, let message): "\(action) \(serial) \(message.id) \(channel)"
        case .close, .authorize: "\(action)"
        }
    }
}
