/// What a frame is, by its number.
enum FrameAction: Int64, Hashable, Sendable {
    case heartbeat = 0
    case acknowledgement = 1
    case refusal = 2
    case connected = 4
    case disconnected = 6
    case close = 7
    case closed = 8
    case error = 9
    case attach = 10
    case attached = 11
    case detach = 12
    case detached = 13
    case presence = 14
    case message = 15
    case synchronization = 16
    case authorize = 17
}
