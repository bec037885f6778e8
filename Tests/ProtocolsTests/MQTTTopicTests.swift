import Testing

@testable import Protocols

@Suite("Topics") struct MQTTTopicTests {
    // MQTT 5, 4.7.1 and 4.7.3.
    @Test func names() {
        for topic in ["a", "/", "a/b", "//", "a b/ü", "$aws/rules/x", String(repeating: "x", count: 65_535)] {
            #expect(MQTTTopic.problem(of: topic) == nil, "\(topic.prefix(20))")
        }
        for topic in ["", "a/+", "#", "a#", "a\u{0}b", String(repeating: "x", count: 65_536)] {
            #expect(MQTTTopic.problem(of: topic) != nil, "\(topic.prefix(20))")
        }
    }

    @Test func filters() {
        for filter in ["a", "#", "+", "a/#", "+/b/#", "/+", "a/b"] {
            #expect(MQTTTopic.problem(ofFilter: filter) == nil)
        }
        for filter in ["", "a#", "#/a", "a+", "+a/b", "a/#/b", "a\u{0}"] {
            #expect(MQTTTopic.problem(ofFilter: filter) != nil, "\(filter)")
        }
    }

    @Test func variablesAreOneLevelWhateverTheBroker() {
        for value in ["van-7", "a_b", "Ähre", "$x", "a:b"] { #expect(MQTTTopic.problem(ofVariable: value) == nil) }
        for value in [
            "", "a.b", "a/b", "a b", "a+", "#", "a*", "a>", "a\u{0}", "a\n", "a\u{A0}b", "a\u{85}",
            String(repeating: "x", count: 257),
        ] {
            #expect(MQTTTopic.problem(ofVariable: value) != nil, "\(value)")
        }
    }
}
