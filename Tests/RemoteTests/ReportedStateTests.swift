import Testing
import WaypostCore

@testable import Remote

@Suite("What a server is told of its settings") struct ReportedStateTests {
    private var trial = SettingsTrial()

    private func json() -> String {
        let state = ReportedState(
            trial, device: "van-7", effective: [RemoteSetting("sampling.bound", .string("3m"))], software: "waypost 1")
        return String(decoding: state.json, as: UTF8.self)
    }

    private mutating func judge(_ version: Int64, _ judgement: SettingsTrial.Judgement) {
        _ = trial.judged(.version(version), judgement, way: "main", at: .zero, time: nil)
    }

    private let end = #""effective":{"sampling.bound":"3m"},"software":"waypost 1"}"#

    @Test mutating func namesTheStateOfTheNewestVersion() {
        #expect(json() == #"{"device":"van-7","version":0,"state":"none","in_force":null,"# + end)
        judge(
            17, .accepted([], clamped: [ClampedSetting("sampling.bound", wanted: .string("1s"), given: .string("5s"))]))
        #expect(
            json() == #"{"device":"van-7","version":17,"state":"trial","in_force":17,"#
                + #""clamped":{"sampling.bound":["1s","5s"]},"# + end)
        trial.putInForce(attempts: 0)
        _ = trial.batchAccepted(by: "main", attempt: 1)
        #expect(json().contains(#""state":"applied""#))
        judge(18, .rejected([RemoteProblem("endpoint.base_url", "not allowed")]))
        #expect(json().hasPrefix(#"{"device":"van-7","version":18,"state":"rejected","in_force":17,"#))
        #expect(json().contains(#""rejected":{"endpoint.base_url":"not allowed"}"#))
        judge(19, .accepted([], clamped: []))
        _ = trial.started(at: .zero)
        _ = trial.started(at: .zero)
        #expect(json().hasPrefix(#"{"device":"van-7","version":19,"state":"reverted","in_force":17,"#))
    }
}
