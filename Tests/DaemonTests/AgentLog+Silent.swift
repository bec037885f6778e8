import Logging

@testable import Daemon

extension AgentLog {
    /// Logs nothing.
    static var silent: AgentLog {
        AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
    }
}
