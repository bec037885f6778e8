@testable import Configuration
@testable import Daemon
@testable import Network
@testable import Remote
@testable import WaypostCore

/// libFuzzer entry: whatever a server sends as a document, what is accepted changes no endpoint, no rule of what is
/// allowed, and nothing beyond a range. A command is carried out once, and only for this device, also over restarts; an
/// envelope brings no other one, and is signed by nobody who has no key. Stored bytes are read to what writes them again,
/// or not at all.
///
/// The last byte chooses which of the four.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRemote(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data, count: size - 1))
    switch data[size - 1] % 4 {
    case 0: judge(bytes)
    case 1: commands(bytes)
    case 2: envelope(bytes)
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

/// A command in each line. A line that begins with a space was kept by the broker, and an empty one is a restart.
private func commands(_ bytes: [UInt8]) {
    var commands = RemoteCommands()
    var ran: Set<String> = []
    var answers = 0
    for line in bytes.split(separator: 0x0A, maxSplits: 200, omittingEmptySubsequences: false) {
        if line.isEmpty {
            commands = RemoteCommands.Stored(commands, at: .zero).commands(at: .zero)
            answers = 0
            continue
        }
        let isRetained = line.first == 0x20
        let outcome = commands.received(
            Array(line), isRetained: isRetained, policy: policy, at: .zero, time: now, trusted: nil)
        switch outcome {
        case .run(let command):
            demand(command.device == nil || command.device == policy.device, "a command of another device")
            demand((0...60_000).contains(command.expires.milliseconds(since: now)), "a command of another time")
            demand(!isRetained, "a command that the broker keeps")
            demand(ran.insert(command.id).inserted, "carried out twice")
            demand(ran.count <= 30, "more than 30 an hour")
            // Every other one is never answered, as if the daemon had ended.
            if ran.count % 2 == 0 { commands.finished(RemoteAnswer(id: command.id)) }
        case .answer(let answer):
            answers += 1
            demand(answers <= 30, "a flood of answers")
            demand(JSONReader.read(answer.json)?["id"]?.string == answer.id, "an answer to nothing")
        case .ignored: break
        }
    }
}

private func envelope(_ bytes: [UInt8]) {
    guard let envelope = SignedEnvelope(bytes) else { return }
    demand(envelope.content.count < bytes.count, "more than there was")
    if let signature = envelope.signature {
        for key in keys { demand(!key.verifies(envelope.content, signature: signature), "signed without the key") }
    }
    commands(envelope.content)
    judge(envelope.content)
}

private func stored(_ bytes: [UInt8]) {
    guard let memory = RemoteMemory(bytes, at: .zero) else { return }
    demand(RemoteMemory(memory.bytes(at: .zero), at: .zero) == memory, "another memory")
}

private nonisolated(unsafe) let environment = ConfigurationEnvironment(
    variables: [:], hostname: { "van" }, machineID: { "0123456789abcdef" })

/// Nobody has them: whatever is signed with one was not signed at all.
private let keys: [MessageKey] = [
    .secret(Array("only in this file".utf8)), .publicKey((0..<32).map { UInt8($0) }),
]

private let now = UTCTime(milliseconds: 1_795_694_400_000)

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
