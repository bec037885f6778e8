import Glibc

/// A secret that the configuration names but does not hold.
package struct Secret: Equatable {
    package enum Reference: Hashable, Sendable {
        /// A file of that name in `CREDENTIALS_DIRECTORY`, put there by `LoadCredential=`.
        case credential(String)
        case file(String)
        case environment(String)
    }

    static let expectation = "\"credential:NAME\", \"file:PATH\" or \"env:NAME\" (never the secret itself)"
    /// Longer ones are no secrets but mistakes.
    static let bytesMax = 64 * 1024

    /// nil = not a reference, perhaps the secret itself: it must not be shown.
    static func reference(_ text: String) -> Reference? {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let name = String(text[text.index(after: colon)...])
        guard !name.isEmpty else { return nil }
        switch text[..<colon] {
        case "credential" where !name.contains("/"): return .credential(name)
        case "file" where name.hasPrefix("/"): return .file(name)
        case "env": return .environment(name)
        default: return nil
        }
    }

    /// The value, or what is wrong, in words that do not reveal it. nil = cannot be known here, and need not be.
    package static func value(
        of reference: Reference, _ environment: ConfigurationEnvironment
    ) -> Result<String?, Mistake> {
        switch reference {
        case .environment(let name):
            guard let value = environment.variables[name] else {
                if environment.isForeign { return .success(nil) }
                return .failure(Mistake(found: "env:\(name), which is not set", expected: "a variable that is set"))
            }
            return checked(Array(value.utf8), "env:\(name)").map { $0 }
        case .credential, .file:
            switch file(of: reference, environment, isPrivate: true) {
            case .failure(let mistake): return .failure(mistake)
            case .success(nil): return .success(nil)
            case .success(let bytes?): return checked(bytes, reference.words).map { $0 }
            }
        }
    }

    /// The file that a reference leads to, whatever it holds. nil = cannot be known here, and need not be.
    ///
    /// - Parameter isPrivate: only its owner may read a `file:`.
    static func file(
        of reference: Reference, _ environment: ConfigurationEnvironment, isPrivate: Bool,
        bytesMax: Int = bytesMax
    ) -> Result<[UInt8]?, Mistake> {
        guard let path = path(of: reference, environment.variables) else {
            guard case .credential(let name) = reference, environment.requiresCredentials else { return .success(nil) }
            return .failure(
                Mistake(
                    found: "no credential \(name) from systemd",
                    expected: "LoadCredential=\(name):PATH below [Service]: sudo systemctl edit waypost"))
        }
        // systemd shows a credential as 0440 with an ACL: its mode means nothing.
        let isFile = if case .file = reference { true } else { false }
        switch contents(path, isPrivate: isPrivate && isFile, bytesMax) {
        case .success(let bytes): return .success(bytes)
        case .failure(.system(EACCES)) where environment.isForeign: return .success(nil)
        case .failure(let reason): return .failure(reason.mistake(reference.words))
        }
    }

    /// nil for what is in no file, and for credentials outside of the unit.
    package static func path(of reference: Reference, _ variables: [String: String]) -> String? {
        switch reference {
        case .environment: nil
        case .file(let path): path
        case .credential(let name): variables["CREDENTIALS_DIRECTORY"].map { "\($0)/\(name)" }
        }
    }

    /// nil when it cannot be read or is no file of reasonable size.
    package static func bytes(ofFile path: String) -> [UInt8]? {
        try? contents(path, isPrivate: false, 4 << 20).get()
    }

    private enum Unusable: Error {
        case system(Int32)
        case notRegular
        case readable(mode_t)
        case tooLong(Int)

        /// - Parameter name: of the file, as the configuration has it.
        func mistake(_ name: String) -> Mistake {
            switch self {
            case .system(let code):
                Mistake(found: "\(name): \(errorText(code))", expected: "a file that can be read")
            case .notRegular:
                Mistake(found: "\(name), which is not a regular file", expected: "a file that can be read")
            case .readable(let mode):
                Mistake(
                    found: "\(name) with mode \(octal(mode & 0o777))",
                    expected: "a file that only its owner can read (chmod 600)")
            case .tooLong(let bytesMax):
                Mistake(found: "\(name), which cannot be read", expected: "a file of at most \(bytesMax / 1024) KiB")
            }
        }
    }

    private static func contents(_ path: String, isPrivate: Bool, _ bytesMax: Int) -> Result<[UInt8], Unusable> {
        do throws(RegularFile.Failure) {
            let file = try RegularFile(path)
            if isPrivate, file.status.st_mode & 0o077 != 0 { return .failure(.readable(file.status.st_mode)) }
            guard let bytes = readAll(file.descriptor, bytesMax: bytesMax) else {
                return .failure(.tooLong(bytesMax))
            }
            return .success(bytes)
        } catch {
            switch error {
            case .system(let code): return .failure(.system(code))
            case .notRegular: return .failure(.notRegular)
            }
        }
    }

    private static func checked(_ bytes: [UInt8], _ name: String) -> Result<String, Mistake> {
        let value = bytes.last == UInt8(ascii: "\n") ? Array(bytes.dropLast()) : bytes
        if value.starts(with: [0xEF, 0xBB, 0xBF]) {
            return .failure(
                Mistake(
                    found: "\(name), which begins with a byte order mark",
                    expected: "the secret alone: save the file as UTF-8 without BOM"))
        }
        if value.isEmpty { return .failure(Mistake(found: "\(name), which is empty", expected: "a secret")) }
        guard let text = String(validating: value, as: UTF8.self), !value.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else {
            return .failure(
                Mistake(found: "\(name) with line breaks or control characters", expected: "one line of text"))
        }
        return .success(text)
    }

    private static func octal(_ mode: mode_t) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}

/// `strerror` without its shared buffer.
package func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
    return buffer.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
}

/// The whole file; nil when it is longer or cannot be read.
package func readAll(_ descriptor: Int32, bytesMax: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
        let count = read(descriptor, &chunk, chunk.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { return nil }
        if count == 0 { return bytes }
        bytes += chunk[..<count]
        if bytes.count > bytesMax { return nil }
    }
}
