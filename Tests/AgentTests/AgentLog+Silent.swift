import Logging

@testable import Agent

extension AgentLog {
    /// Logs nothing.
    static var silent: AgentLog {
        AgentLog(logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() }, positions: false)
    }
}
