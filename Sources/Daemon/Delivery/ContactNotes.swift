import Glibc
import WaypostCore
import WaypostHost

/// A small file that a boot forgets, as in `/run`.
package struct NoteFile {
    /// nil = there is none, or it cannot be read.
    package var read: () -> [UInt8]?
    /// As far as that works.
    package var write: ([UInt8]) -> Void

    package init(read: @escaping () -> [UInt8]?, write: @escaping ([UInt8]) -> Void) {
        self.read = read
        self.write = write
    }

    /// For a daemon that has no runtime directory.
    static var none: NoteFile { NoteFile(read: { nil }, write: { _ in }) }

    private static let bytesMax = 64 * 1024

    static func at(_ path: String) -> NoteFile {
        NoteFile(
            read: {
                let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                guard descriptor >= 0 else { return nil }
                defer { close(descriptor) }
                var bytes = [UInt8](repeating: 0, count: bytesMax)
                let count = Glibc.read(descriptor, &bytes, bytes.count)
                return count > 0 ? Array(bytes[..<count]) : nil
            },
            write: { try? replaceFile(path, with: $0, mode: 0o600, isDurable: false) })
    }
}

/// When servers were contacted in this boot, kept for the next process of it: a daemon that is restarted again and again asks
/// no server each time.
final class ContactNotes {
    struct Note: Equatable {
        /// Of the address, the device and the files with secrets: another one is another server.
        var digest: UInt64
        var triedAt: EventTime
        var reachedAt: EventTime?
        /// What kept it from being reached, for people.
        var problem: String?
    }

    private static let notesMax = 100
    private let file: NoteFile
    private var notes: [String: Note] = [:]

    init(_ file: NoteFile) {
        self.file = file
        for line in file.read()?.split(separator: 0x0A) ?? [] { add(line) }
    }

    /// - Returns: nil = none of this boot, or of another server.
    func note(of endpoint: String, digest: UInt64, at now: EventTime) -> Note? {
        // The clock of a boot begins anew, and a container may keep the file.
        notes[endpoint].flatMap { $0.digest == digest && $0.triedAt <= now && $0.reachedAt ?? .zero <= now ? $0 : nil }
    }

    func set(_ note: Note?, of endpoint: String) {
        guard notes[endpoint] != note else { return }
        notes[endpoint] = note
        var text = ""
        for (name, note) in notes.sorted(by: { $0.key < $1.key }) {
            let reached = note.reachedAt.map { String($0.nanoseconds) } ?? "-"
            let problem = (note.problem ?? "").visible(bytesMax: 400).replacing("\t", with: " ")
            text += "\(name)\t\(note.digest)\t\(note.triedAt.nanoseconds)\t\(reached)\t\(problem)\n"
        }
        file.write(Array(text.utf8))
    }

    private func add(_ line: ArraySlice<UInt8>) {
        let parts = String(decoding: line, as: UTF8.self).split(separator: "\t", omittingEmptySubsequences: false)
        guard notes.count < Self.notesMax, parts.count == 5, let digest = UInt64(parts[1]),
            let tried = Int64(parts[2]), tried >= 0
        else { return }
        notes[String(parts[0])] = Note(
            digest: digest, triedAt: EventTime(nanoseconds: tried),
            reachedAt: Int64(parts[3]).map(EventTime.init(nanoseconds:)),
            problem: parts[4].isEmpty ? nil : String(parts[4]))
    }
}
