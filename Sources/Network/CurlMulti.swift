import CCurl

/// A multi handle of libcurl on a loop of ours: tells which descriptors to watch, and when libcurl wants to be called.
final class CurlMulti {
    /// For what is set on it; not to be cleaned up.
    let handle: UnsafeMutableRawPointer
    private let watch: (Int32, HTTPUplink.Interest?) -> Void
    /// What each handle waited for last. libcurl tells the connection of one that is under way in no other way.
    private var descriptors: [UnsafeMutableRawPointer: Int32] = [:]

    /// - Parameter watch: nil = not any more.
    /// - Returns: nil when memory is short.
    init?(watch: @escaping (Int32, HTTPUplink.Interest?) -> Void) {
        guard let handle = curl_multi_init() else { return nil }
        (self.handle, self.watch) = (handle, watch)
        let onSocket: curl_socket_callback = { easy, descriptor, what, context, _ in
            guard let context else { return 0 }
            let multi = Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue()
            if let easy, what != CURL_POLL_REMOVE { multi.descriptors[easy] = descriptor }
            let interest = HTTPUplink.Interest(
                readable: what == CURL_POLL_IN || what == CURL_POLL_INOUT,
                writable: what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
            multi.watch(descriptor, what == CURL_POLL_REMOVE ? nil : interest)
            return 0
        }
        _ = waypost_curl_multi_set_socket_function(handle, onSocket)
        _ = waypost_curl_multi_set_pointer(handle, CURLMOPT_SOCKETDATA, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Closes its connections. Nothing else may be done with it then.
    func close() { curl_multi_cleanup(handle) }

    /// - Returns: why it cannot be added, in words of libcurl; nil = it is under way.
    func add(_ easy: UnsafeMutableRawPointer) -> String? {
        let code = curl_multi_add_handle(handle, easy)
        return code == CURLM_OK ? nil : String(cString: curl_multi_strerror(code))
    }

    func remove(_ easy: UnsafeMutableRawPointer) {
        curl_multi_remove_handle(handle, easy)
        descriptors[easy] = nil
    }

    /// nil = it has not waited for any yet.
    func descriptor(of easy: UnsafeMutableRawPointer) -> Int32? { descriptors[easy] }

    /// Something came on a descriptor, or, with `CURL_SOCKET_TIMEOUT`, time has passed.
    func drive(_ descriptor: Int32, _ events: Int32) {
        var running: Int32 = 0
        curl_multi_socket_action(handle, descriptor, events, &running)
    }

    /// What has ended since, one at each call; nil = nothing more. The message is stored in the handle, so it is read before
    /// that is removed.
    func nextFinished() -> (UnsafeMutableRawPointer, CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(handle, &left) {
            if message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle {
                return (easy, message.pointee.data.result)
            }
        }
        return nil
    }

    /// How soon it wants to be called; nil = it waits for nothing.
    ///
    /// Read after every call, and not from the timer callback: that one is silent when a deadline is
    /// reached a little too early for libcurl's own clock, and the transfer would hang.
    var timer: Duration? {
        var milliseconds = 0
        guard curl_multi_timeout(handle, &milliseconds) == CURLM_OK, milliseconds >= 0 else { return nil }
        // Rounded down by libcurl; the extra millisecond saves a wake-up that comes too early.
        return .milliseconds(milliseconds == 0 ? 0 : milliseconds + 1)
    }
}
