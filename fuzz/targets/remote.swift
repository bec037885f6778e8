import JSON
import Positioning

@testable import Configuration
@testable import Remote

/// libFuzzer entry: whatever a server sends as a document, what is accepted changes no endpoint, no rule of what is
/// allowed, and nothing beyond a range. A command is carried out once, and only for this device. Stored bytes are read to
/// what writes them again, or not at all.
///
/// The last byte chooses which of the three.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRemote(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data, count: size - 1))
    switch data[size - 1] % 3 {
    case 0: judge(bytes)
    case 1: command(bytes)
    default: stored(bytes)
    }
    return 0
}

private func judge(_ bytes: [UInt8]) {
    guard let document = try? DesiredDocument(bytes) else { return }
    demand((1...DesiredDocument.versionMax).contains(document.version), "version \(document.version)")
    let overlay = RemoteOverlay(document.settings, version: document.version, over: base, environment: environment)
    guard case .accepted(let loaded, let settings, _) = overlay else { return }
    demand(settings.allSatisfy { policy.allows($0.key) }, "a key that is not allowed")
    demand(loaded.config.endpoints == base.config.endpoints, "an endpoint has changed")
    demand(loaded.config.remote == base.config.remote, "[remote] has changed")
    demand(loaded.config.tracking.sampling.minGap <= .seconds(300), "beyond the range")
}

private func command(_ bytes: [UInt8]) {
    var commands = RemoteCommands()
    let now = UTCTime(milliseconds: 1_795_694_400_000)
    let first = commands.received(bytes, isRetained: false, policy: policy, at: .zero, time: now)
    guard case .run(let command) = first else { return }
    demand(command.device == nil || command.device == "van-7", "a command of another device")
    demand((0...60_000).contains(command.expires.milliseconds(since: now)), "a command of another time")
    let second = commands.received(bytes, isRetained: false, policy: policy, at: .zero, time: now)
    if case .run = second { demand(false, "carried out twice") }
}

private func stored(_ bytes: [UInt8]) {
    guard let memory = RemoteMemory(bytes, at: .zero) else { return }
    demand(RemoteMemory(memory.bytes(at: .zero), at: .zero) == memory, "another memory")
}

private nonisolated(unsafe) let environment = ConfigurationEnvironment(
    variables: [:], hostname: { "van" }, machineID: { "0123456789abcdef" })

private let policy = base.config.remote.map { remote in
    var policy = remote.policy
    policy.commands = Set(RemoteCommand.Verb.allCases)
    return policy
}!

private let base: LoadedConfiguration = {
    let text = """
        [device]
        id = "van-7"
        [source]
        kind = "serial"
        path = "/dev/null"
        [[endpoint]]
        base_url = "https://fleet.example"
        [remote]
        settings_url = "https://fleet.example/van-7/settings"
        allow = ["sampling", "tracking", "resolution", "log"]
        [remote.range]
        "sampling.min_gap" = ["0s", "5m"]
        """
    guard let loaded = try? AgentConfig.parse([("w.toml", Array(text.utf8))], environment: environment) else {
        fatalError("the configuration has a mistake")
    }
    return loaded
}()
