import ArgumentParser
import CLinux
import Configuration
import Doctor
import Glibc

struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Find out what keeps this host from tracking, and what to do about it.",
        discussion: """
            Makes \(Check.all.count) checks, from the configuration to the queue, and shows a command for each that fails. It changes \
            nothing, opens no serial line and does not speak to gpsd; endpoints get an OPTIONS request without a \
            credential. Run it as root: much is hidden from other users, and then 'unknown'. The output holds no \
            positions and no secrets. \
            Exit status: 0 all is well, 1 something needs attention, 2 no daemon answers, 77 not permitted.
            """)

    @OptionGroup var daemon: DaemonOptions

    @Flag(help: "Print everything as one JSON object.")
    var json = false

    @Flag(help: "A line for each check, also for those that are good.")
    var all = false

    func run() throws {
        let evidence = HostLook(daemon: daemon).evidence()
        let examination = Examination(evidence, version: AgentVersion.current)
        if json {
            printJSON(examination.json)
        } else {
            examination.lines(listsAll: all, columns: Terminal.columns).forEach(printLine)
        }
        try finishOutput()
        if examination.exitStatus != 0 { throw ExitCode(examination.exitStatus) }
    }
}
