/// When a changed value takes effect.
package enum ChangeEffect: String, Sendable {
    case reload
    /// On a reload too, unless it names a `credential:` that the daemon was not started with.
    case reloadOfCredentials
    case restart
}

/// What the reader knows of a key, whether or not the file has it: `docs/configuration.md` is made of this.
struct ConfigurationKey {
    /// With brackets.
    var table: String
    var name: String
    /// What is accepted, with article.
    var accepted: String
    /// As TOML; nil = unset.
    var standard: String?
    /// Where the default comes from when it is not built in.
    var note: String?
    var isRequired = false
    /// The key for which this is a vendor's name.
    var aliasOf: String?
    var effect: ChangeEffect
}
