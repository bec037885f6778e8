import Protocols

/// Compiles what a profile says about messages to a broker.
struct BrokerCompiler {
    private let tree: ProfileNode
    private let reader: ProfileReader
    private let templates: TemplateCompiler

    private static let keys = ["topic", "qos", "retain", "records", "client_id", "user", "will", "birth", "status"]

    /// - Parameter tree: the table `mqtt`.
    init(_ tree: ProfileNode, _ templates: TemplateCompiler) {
        self.tree = tree
        self.templates = templates
        reader = templates.reader
    }

    /// Maximum rows of one message.
    static func rowsPerMessage(_ tree: ProfileNode, _ reader: ProfileReader) -> Int {
        reader.integer(tree, "records", in: 1...10_000, path: "mqtt.") ?? 1
    }

    func broker() -> CompiledProfile.Broker {
        if let members = reader.table(tree, "mqtt") { reader.checkKeys(members, Self.keys, in: "mqtt") }
        var broker = CompiledProfile.Broker()
        broker.rowsPerMessage = Self.rowsPerMessage(tree, reader)
        broker.qos = reader.integer(tree, "qos", in: 0...1, path: "mqtt.") == 0 ? .atMostOnce : .atLeastOnce
        broker.isRetained = reader.flag(tree, "retain", in: "mqtt.") ?? false
        broker.clientID = text("client_id")
        broker.user = text("user")
        broker.will = tree.member("will").flatMap { announcement($0.node, "mqtt.will") }
        broker.births = births()
        broker.status = tree.member("status").flatMap { topic($0.node, .bindHeader, "mqtt.status") }
        return broker
    }

    /// The topic of all rows, or of those of an event.
    ///
    /// - Parameter use: what it may name.
    func topic(_ node: ProfileNode?, _ use: TemplateUse, _ keyPath: String) -> TextTemplate? {
        guard let node else {
            reader.report(keyPath, "found no topic, expected where the messages go", at: tree.position)
            return nil
        }
        guard let content = reader.string(node, keyPath),
            let template = templates.text(content, TemplateSite(use, keyPath, of: node))
        else { return nil }
        if let problem = problem(of: template) { reader.report(keyPath, problem, at: node.position) }
        return template
    }

    private func problem(of template: TextTemplate) -> String? {
        if template.parts.isEmpty { return "found an empty topic, expected one as \"fleet/${device}/location\"" }
        for part in template.parts {
            switch part {
            case .literal(let text):
                if let problem = MQTTTopic.problem(of: text) { return "found a topic that cannot be: \(problem)" }
            case .reference(let expression):
                // A cast may make it fit.
                guard expression.casts.isEmpty, let value = templates.names.value(of: expression.source),
                    let problem = MQTTTopic.problem(ofVariable: value)
                else { continue }
                return "found \"\(value)\" as a level of a topic, but \(problem); expected another name, or :slug"
            case .optional: break
            }
        }
        return nil
    }

    private func text(_ key: String) -> TextTemplate? {
        guard let node = tree.member(key)?.node, let content = reader.string(node, "mqtt.\(key)") else { return nil }
        return templates.text(content, TemplateSite(.bindHeader, "mqtt.\(key)", of: node))
    }

    private func births() -> [CompiledProfile.Announcement] {
        guard let node = tree.member("birth")?.node else { return [] }
        guard case .array(let items) = node.value else {
            reader.report(node, "mqtt.birth", expected: "a list of { topic = …, payload = … }")
            return []
        }
        return items.enumerated().compactMap { announcement($1, "mqtt.birth[\($0)]") }
    }

    private func announcement(_ node: ProfileNode, _ path: String) -> CompiledProfile.Announcement? {
        guard let members = reader.table(node, path, expected: "{ topic = …, payload = … }") else { return nil }
        reader.checkKeys(members, ["topic", "payload", "retain"], in: path)
        let topic = topic(node.member("topic")?.node, .bindHeader, path + ".topic")
        guard let payload = node.member("payload")?.node else {
            reader.report(path + ".payload", "found none, expected a text or a table", at: node.position)
            return nil
        }
        let isRetained = reader.flag(node, "retain", in: path + ".") ?? false
        guard let topic, let compiled = self.payload(payload, path + ".payload") else { return nil }
        return .init(topic: topic, payload: compiled, isRetained: isRetained)
    }

    private func payload(_ node: ProfileNode, _ path: String) -> CompiledProfile.Announcement.Payload? {
        if case .string(let content) = node.value {
            // An empty one clears what the broker has retained.
            if content.isEmpty { return .text(TextTemplate(parts: [])) }
            return templates.text(content, TemplateSite(.bindHeader, path, of: node)).map { .text($0) }
        }
        return .json(templates.json(node, .bindBody, path))
    }
}
