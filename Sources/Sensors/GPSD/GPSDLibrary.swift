import CGPS
import Glibc

/// libgps, loaded when a receiver is behind gpsd.
///
/// It brings D-Bus, libsystemd and what those want into the process, which others need not pay for; and one binary works
/// with every release of it that is known here.
struct GPSDLibrary: Sendable {
    /// Newest first: the soname, and where its struct has the descriptor.
    static let releases: KeyValuePairs<String, Int32> = [
        "libgps.so.32": WAYPOST_GPS_DESCRIPTOR_32,
        "libgps.so.30": WAYPOST_GPS_DESCRIPTOR_28,
        "libgps.so.28": WAYPOST_GPS_DESCRIPTOR_28,
    ]

    let name: String
    private let functions: waypost_libgps
    private let descriptorOffset: Int

    /// It stays loaded: calling again is cheap, and finds what was installed meanwhile.
    ///
    /// - Throws: when none of the releases is installed, with the names of the packages.
    static func load(_ releases: KeyValuePairs<String, Int32> = releases) throws(SourceProblem) -> GPSDLibrary {
        var reason = ""
        for (name, offset) in releases {
            guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else {
                reason = dlerror().map { String(cString: $0) } ?? name
                continue
            }
            var functions = waypost_libgps()
            guard waypost_gps_find(handle, &functions) else {
                reason = "\(name) lacks a function"
                continue
            }
            return GPSDLibrary(name: name, functions: functions, descriptorOffset: Int(offset))
        }
        throw SourceProblem(
            "libgps, by which gpsd is asked, cannot be loaded; install the package libgps28 (Debian 12), "
                + "libgps30t64 (Debian 13) or libgps32: \(reason)", lacksLibrary: true)
    }

    /// - Returns: nil when that failed: errno is a number of libgps below zero, or one of the system's.
    func open(host: String, port: UInt16) -> GPSDSession? {
        guard let memory = calloc(1, Int(WAYPOST_GPS_ROOM)) else { return nil }
        errno = 0
        guard withUnsafePointer(to: functions, { waypost_gps_open($0, host, String(port), memory) }) == 0 else {
            let code = errno
            free(memory)
            errno = code
            return nil
        }
        return GPSDSession(library: self, memory: memory)
    }

    /// In words: what `errno` was after `open`.
    func description(of code: Int32) -> String {
        functions.describe(code).map { String(cString: $0) } ?? "error \(code)"
    }

    fileprivate func watch(_ memory: UnsafeMutableRawPointer, device: String?) -> Bool {
        withUnsafePointer(to: functions) { waypost_gps_watch($0, memory, device) == 0 }
    }

    fileprivate func close(_ memory: UnsafeMutableRawPointer) {
        withUnsafePointer(to: functions) { waypost_gps_close($0, memory) }
    }

    /// As in the struct: an int, or in newer releases an integer of 64 bits with its low half first.
    fileprivate func descriptor(_ memory: UnsafeMutableRawPointer) -> Int32 {
        memory.load(fromByteOffset: descriptorOffset, as: Int32.self)
    }
}

/// The struct of libgps for one connection. libgps keeps private data in it, so that it must never be copied.
///
/// Used by one thread at a time.
final class GPSDSession: @unchecked Sendable {
    private let library: GPSDLibrary
    private let memory: UnsafeMutableRawPointer
    let descriptor: Int32

    fileprivate init(library: GPSDLibrary, memory: UnsafeMutableRawPointer) {
        self.library = library
        self.memory = memory
        descriptor = library.descriptor(memory)
    }

    deinit {
        library.close(memory)
        free(memory)
    }

    /// Whether the descriptor is what libgps connected: a struct that is laid out in another way gives some other number.
    var isConnected: Bool {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) == 0 }
        }
    }

    /// Asks for the reports of all devices, or of one.
    /// - Returns: false when the connection does not take it.
    func watch(device: String?) -> Bool { library.watch(memory, device: device) }
}
