/// How a server writes its list: in a form that has a name, or where a table of paths says.
enum ListProfile<Form: Hashable & Sendable>: Hashable, Sendable {
    case named(Form)
    /// The table is read and shown by itself.
    case paths
}

extension ValueForm {
    /// - Parameter forms: those that have a name, with it.
    static func listProfile<Form>(_ forms: [(String, Form)]) -> ValueForm where Value == ListProfile<Form> {
        let words = ValueForm.word(forms.map { ($0.0, ListProfile.named($0.1)) })
        let names = forms.map(\.0.asTOML).joined(separator: ", ")
        return ValueForm(
            expected: "\(names) or a table of paths",
            read: { node, environment throws(Mistake) in
                if case .table = node.value { return .paths }
                return try words.read(node, environment)
            },
            render: { $0 == .paths ? "" : words.render($0) })
    }
}

extension ValueForm where Value == [String] {
    /// From a value of JSON to one in it.
    static var jsonPath: ValueForm {
        let text = ValueForm<String>.text("a path of names and indexes such as \"center.lat\"") { text in
            let isGood = text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { !$0.isEmpty }
            return isGood ? nil : Mistake()
        }
        var form = text.map(
            to: { $0.split(separator: ".").map(String.init) }, from: { $0.joined(separator: ".") })
        form.render = { $0.isEmpty ? "" : text.render($0.joined(separator: ".")) }
        return form
    }
}
