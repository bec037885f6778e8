/// One constant for each kind of event that people look for in the journal, whatever its wording: `MESSAGE_ID` of its
/// entries, 32 hexadecimal digits.
///
/// `systemd/waypost.catalog` explains each to whoever reads with `journalctl -x`.
enum MessageID: String, CaseIterable {
    case started = "b3a1c0de5f6a4a0f8c2d1e4b7a905101"
    case stopping = "b3a1c0de5f6a4a0f8c2d1e4b7a905102"
    case motion = "b3a1c0de5f6a4a0f8c2d1e4b7a905103"
    case source = "b3a1c0de5f6a4a0f8c2d1e4b7a905104"
    case upload = "b3a1c0de5f6a4a0f8c2d1e4b7a905105"
    case queue = "b3a1c0de5f6a4a0f8c2d1e4b7a905106"
    case summary = "b3a1c0de5f6a4a0f8c2d1e4b7a905107"
    case configuration = "b3a1c0de5f6a4a0f8c2d1e4b7a905108"
    case power = "b3a1c0de5f6a4a0f8c2d1e4b7a905109"
    case schedule = "b3a1c0de5f6a4a0f8c2d1e4b7a905110"
    case quarantine = "b3a1c0de5f6a4a0f8c2d1e4b7a905111"
    case refused = "b3a1c0de5f6a4a0f8c2d1e4b7a905112"
    case places = "b3a1c0de5f6a4a0f8c2d1e4b7a905120"
    case remoteApplied = "b3a1c0de5f6a4a0f8c2d1e4b7a905121"
    case remoteRejected = "b3a1c0de5f6a4a0f8c2d1e4b7a905122"
    case remoteReverted = "b3a1c0de5f6a4a0f8c2d1e4b7a905123"
    case remoteCommand = "b3a1c0de5f6a4a0f8c2d1e4b7a905124"
}
