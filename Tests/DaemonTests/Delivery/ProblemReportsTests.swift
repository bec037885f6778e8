import Configuration
import ConfigurationTestSupport
import Protocols
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Daemon

extension EndpointDeliveryTests {
    @Test func aBrokerHearsOfOtherProblemsOnceAMinuteAtMost() throws {
        let endpoint = "[[endpoint]]\nbase_url = \"mqtts://broker.example\"\nprofile = \"home-assistant-mqtt\"\n"
        let settings = try loaded(smallest + endpoint).config.endpoints.last?.settings
        try bench(settings, host: LeapingHost()) { loop, delivery, uplink in
            var problems = ["receiver: silent for 3 s"]
            let reports = ProblemReports([delivery], loop: loop) { _ in problems }
            let start = loop.now
            reports.statusChanged()
            #expect(uplink.requests.isEmpty)
            try loop.run(every: .milliseconds(100)) { uplink.requests.count == 1 }
            #expect(loop.now >= start + .seconds(60))
            let message = try #require(uplink.requests[0].broker?.messages[0])
            #expect(message.topic.hasPrefix("waypost/") && message.topic.hasSuffix("/status") && message.isRetained)
            #expect(
                String(decoding: message.payload, as: UTF8.self)
                    == "{\"problem\":true,\"problems\":[\"receiver: silent for 3 s\"]}")
            uplink.end(UplinkOutcome(.published(BrokerReply([.success]))))
            problems = ["receiver: silent for 99 s"]
            reports.statusChanged()
            problems = []
            reports.statusChanged()
            #expect(uplink.requests.count == 1)
            try loop.run(every: .milliseconds(100)) { uplink.requests.count == 2 }
            #expect(ProblemReports.payload(problems) == uplink.requests[1].broker?.messages[0].payload)
            // What was not taken is said again with the next change.
            uplink.fail(.connect("refused"))
            reports.statusChanged()
            try loop.run(every: .milliseconds(100)) { uplink.requests.count == 3 }
        }
    }
}
