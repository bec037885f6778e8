/// Members of an object of JSON, each named by the way to it: `motion.engine.mode`.
extension [String: Any] {
    package func member(_ path: String) -> Any? {
        var value: Any? = self
        for name in path.split(separator: ".") { value = (value as? [String: Any])?[String(name)] }
        return value
    }

    package func int(_ path: String) -> Int? { member(path) as? Int }
    package func double(_ path: String) -> Double? { member(path) as? Double }
    package func string(_ path: String) -> String? { member(path) as? String }
    package func bool(_ path: String) -> Bool? { member(path) as? Bool }
    package func object(_ path: String) -> [String: Any]? { member(path) as? [String: Any] }
    package func list(_ path: String) -> [[String: Any]] { member(path) as? [[String: Any]] ?? [] }
    /// The problems of a status, and whatever else is no single word, to look for words in.
    package func words(_ path: String) -> String { "\(member(path) ?? "")" }
}
