import Foundation
import Testing
import WaypostCore

@testable import Sensors

@Suite struct SerialProbeTests {
    private static let sentence = "$GPGLL,4916.45,N,12311.12,W,225444,A*31\r\n"
    private static let ubx: [UInt8] = [0xB5, 0x62, 1, 7, 2, 0, 9, 8, 0x1B, 0x4B]

    @Test(
        arguments: [
            ([], .nothing), (Array(sentence.utf8), .noise), (Array((sentence + sentence).utf8), .nmea(sentences: 2)),
            (Array(repeating: 0xF8, count: 500), .noise), ([0, 1] + ubx + [7], .ubx), (ubx.dropLast() + [0], .noise),
            ([0xB5, 0x62, 1, 7, 0xFF, 0xFF, 0, 0, 0], .noise),
        ] as [([UInt8], SerialProbe.Sample)])
    func knowsWhatComes(bytes: [UInt8], sample: SerialProbe.Sample) {
        #expect(SerialProbe.Sample(bytes) == sample)
    }

    /// A pseudo-terminal has any speed.
    @Test func findsAReceiver() throws {
        let terminal = try PseudoTerminal()
        var tried: [Int] = []
        let (master, bytes, ended) = (terminal.master, Array(Self.sentence.utf8), DispatchSemaphore(value: 0))
        Thread.detachNewThread {
            // For less than the time of one speed; what comes before it is set does not count.
            for _ in 0..<20 {
                _ = Glibc.write(master, bytes, bytes.count)
                usleep(50_000)
            }
            ended.signal()
        }
        let finding = try SerialProbe.search(terminal.path, within: .seconds(10)) { tried.append($0.baud) }
        ended.wait()
        guard case .nmea(let sentences) = finding.sample else {
            Issue.record("\(finding)")
            return
        }
        #expect(sentences >= 3)
        #expect(finding.speed != nil && tried.count == 1)
        #expect(throws: SourceProblem.self) {
            try SerialProbe.search("/dev/null", within: .seconds(1)) { _ in }
        }
    }
}
