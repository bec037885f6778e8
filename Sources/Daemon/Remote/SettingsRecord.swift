import Remote
import WaypostCore

/// What settings from afar have changed, as the queue keeps it.
struct SettingsRecord {
    private var before: [JSONValue.Member] = []
    private var after: [JSONValue.Member] = []

    /// - Parameters:
    ///   - former: the keys that may change, as they were.
    ///   - present: the same keys, as they are.
    init(from former: [RemoteSetting], to present: [RemoteSetting]) {
        for setting in present {
            let old = former.first { $0.key == setting.key }
            guard old?.value != setting.value else { continue }
            before.append(.init(setting.key, old?.value ?? .null))
            after.append(.init(setting.key, setting.value))
        }
        for setting in former where !present.contains(where: { $0.key == setting.key }) {
            before.append(.init(setting.key, setting.value))
            after.append(.init(setting.key, .null))
        }
    }

    /// `{"state":"applied","version":17,"way":"main","before":{…},"after":{…}}`
    func json(_ state: String, version: Int64, way: String) -> String {
        let value = JSONValue.object([
            .init("state", .string(state)), .init("version", .int(version)), .init("way", .string(way)),
            .init("before", .object(before)), .init("after", .object(after)),
        ])
        return String(decoding: value.bytes, as: UTF8.self)
    }
}
