/// Why a connection is closed (RFC 6455, 7.4): the number in a close frame.
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let normal = WebSocketCloseCode(rawValue: 1000)
    package static let goingAway = WebSocketCloseCode(rawValue: 1001)
    package static let protocolError = WebSocketCloseCode(rawValue: 1002)
    package static let notText = WebSocketCloseCode(rawValue: 1007)
    package static let tooBig = WebSocketCloseCode(rawValue: 1009)

    /// Whether a close frame may have it: 1004 to 1006 and 1015 stand for what no frame says, and others have no
    /// meaning.
    var mayBeSent: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// What the server did that the standard forbids, or that we do not take.
package struct WebSocketViolation: Error, Hashable, Sendable {
    /// What it is told.
    package let code: WebSocketCloseCode
    /// For people: "the server masked a frame".
    package let words: String

    init(_ code: WebSocketCloseCode = .protocolError, _ words: String) {
        self.code = code
        self.words = words
    }
}
