import CUdev
import Testing

@testable import Sensors

/// The system libraries of the receiver's side can be loaded or linked in the releases that we support.
@Suite struct SystemLibraryTests {
    @Test func libgpsIsLoadedWhenItIsWanted() throws {
        let library = try GPSDLibrary.load()
        #expect(library.name.hasPrefix("libgps.so."))
        // -6 is what gps_open tells when nobody listens.
        #expect(library.description(of: -6).contains("connect"))
    }

    @Test func withoutLibgpsThePackagesAreNamed() throws {
        let problem = #expect(throws: SourceProblem.self) { try GPSDLibrary.load(["libgps.so.no-such-release": 24]) }
        #expect(problem?.description.contains("libgps28") == true)
        #expect(problem?.description.contains("libgps.so.no-such-release") == true)
    }

    @Test func aStructThatIsLaidOutInAnotherWayIsNoConnection() throws {
        let listener = try Listener()
        let known = try GPSDLibrary.load()
        #expect(known.open(host: "127.0.0.1", port: listener.port)?.isConnected == true)
        // The time of the last fix is there, which is zero.
        let strange = try GPSDLibrary.load([known.name: 8])
        #expect(strange.open(host: "127.0.0.1", port: listener.port)?.isConnected == false)
    }

    @Test func libudevOpens() {
        let context = udev_new()
        #expect(context != nil)
        udev_unref(context)
    }
}
