import CGPS
import CUdev
import Testing

/// The system libraries of the receiver's side can be imported and linked in the releases that we support.
@Suite struct SystemLibraryTests {
    @Test func libgpsSpeaksAnInterfaceThatIsKnown() {
        // 11 is Debian 12's gpsd 3.22, 14 is 3.25; the raw JSON line that gps_read returns is the same in all of them.
        #expect(GPSD_API_MAJOR_VERSION >= 11)
        #expect(gps_errstr(-6).map { String(cString: $0) }?.isEmpty == false)
    }

    @Test func libudevOpens() {
        let context = udev_new()
        #expect(context != nil)
        udev_unref(context)
    }
}
