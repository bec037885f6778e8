import WaypostCore

/// What a configuration may refer to outside its own text.
package struct ConfigurationEnvironment {
    /// Of the process: `${env:NAME}`, `STATE_DIRECTORY`, `RUNTIME_DIRECTORY`, `CREDENTIALS_DIRECTORY`.
    package var variables: [String: String]
    /// `${hostname}`; nil when the host has none.
    package var hostname: () -> String?
    /// `${machine_id}` and the device named `machine`: 16 hex digits that are derived from the machine id for this
    /// application alone, never the machine id itself; nil when the host has none.
    package var machineID: () -> String?
    /// An earlier date of a live receiver is due to the rollover of its week number; nil = accept it.
    package var buildDate: CivilDate?
    /// Whether a `credential:` that cannot be looked up is an error. `check` sets false: outside of the unit there is no
    /// `CREDENTIALS_DIRECTORY`, and its absence proves nothing about the file.
    package var requiresCredentials: Bool
    /// Whether another process runs with the configuration: secrets that it may have and this one has not, in variables and
    /// in files of another user, are taken for good.
    package var isForeign = false
    /// Contents of files that a configuration names, by path, in place of those on disk.
    var included: [String: [UInt8]] = [:]
    /// The tz database.
    package var zoneInfo = "/usr/share/zoneinfo"
    /// The time zone of the host: a file of that database, or a link to one.
    package var localTime = "/etc/localtime"

    package init(
        variables: [String: String], hostname: @escaping () -> String?, machineID: @escaping () -> String?,
        buildDate: CivilDate? = nil, requiresCredentials: Bool = true
    ) {
        self.variables = variables
        self.hostname = hostname
        self.machineID = machineID
        self.buildDate = buildDate
        self.requiresCredentials = requiresCredentials
    }

    /// The first directory of a list that systemd sets, `/var/lib/waypost` and the like; `fallback` when unset.
    func directory(_ variable: String, fallback: String) -> String {
        let first = (variables[variable] ?? "").split(separator: ":").first.map(String.init)
        return first ?? fallback
    }
}
