import Foundation
import TestSupport
import Testing

/// Servers that were made for the trackers of phones, and whose rules are in their code and not in HTTP.
@Suite(.waiting) struct PhoneServerTests {
    private let fence = """
        [[geofence]]
        id = "f-1"
        name = "Depot North"
        center = { latitude = 52.505, longitude = 13.4 }
        radius = "150m"
        """

    /// The parameters as OsmAndProtocolDecoder takes them: with any query in the URL the body is not read.
    private static func parameters(_ request: ScriptedServer.Request) -> [String: String] {
        request.query.isEmpty ? request.form : request.query
    }

    @Test func traccarReadsItsParameters() throws {
        let server = try ImitatedServer { request, earlier in
            let values = Self.parameters(request)
            guard values["id"] == "rig", request.body.allSatisfy({ $0 < 128 }) else { return .status(400) }
            guard Int(values["timestamp"] ?? "") != nil, Double(values["lat"] ?? "") != nil else { return .status(400) }
            return .status(200, earlier.count == 3 ? "engineStop" : "")
        }
        let bench = try ServerRig(server, "profile = \"traccar\"\n")
        let said = try bench.runToEnd()
        let values: [[String: String]] = server.exchanges.map { Self.parameters($0.request) }
        let times: [Int] = values.compactMap { Int($0["timestamp"] ?? "") }
        #expect(times == bench.times)
        #expect(server.exchanges.allSatisfy { $0.status == 200 })
        // 20 m/s in knots.
        let speed = try #require(Double(values.last?["speed"] ?? ""))
        #expect((37.9...39.9).contains(speed))
        #expect(!said.contains("engineStop"))
    }

    @Test(arguments: [("traccar", 400), ("traccar-json", 404)])
    func traccarDoesNotKnowTheDevice(_ profile: String, _ status: Int) throws {
        let server = try ImitatedServer(answering: .status(status))
        let bench = try ServerRig(server, "profile = \"\(profile)\"\n")
        try bench.start()
        let paused = try bench.rig.waitForEndpoint { $0["reason"] as? String == "not found" }
        #expect(paused["waiting"] as? Int == bench.times.count)
        #expect(server.exchanges.count == 1)
        #expect(try bench.quarantine().isEmpty)
    }

    /// It reads six numbers whether they are there or not, and a record without one ends the connection.
    @Test func traccarJSONClosesOnWhatItCannotRead() throws {
        let names = ["latitude", "longitude", "accuracy", "speed", "heading", "altitude"]
        let server = try ImitatedServer { request, _ in
            guard let location = request.object["location"] as? [String: Any],
                let coords = location["coords"] as? [String: Any], names.allSatisfy({ coords[$0] is NSNumber })
            else { return .close }
            if let battery = location["battery"] as? [String: Any], battery.count < 2 { return .close }
            return .status(200)
        }
        let bench = try ServerRig(server, "profile = \"traccar-json\"\n")
        try bench.runToEnd()
        #expect(server.exchanges.count == bench.times.count && server.exchanges.allSatisfy(\.wasTaken))
    }

    // Overland.

    private static let overland = """
        profile = "overland"
        batch_size = 10
        secrets = { token = "env:TOKEN" }

        """

    private func points(_ server: ImitatedServer) -> [String] {
        server.exchanges.flatMap { $0.request.rows() }
            .compactMap { ($0["properties"] as? [String: Any])?["timestamp"] as? String }
    }

    @Test func overlandIsWaitedForUntilItSaysOk() throws {
        let server = try ImitatedServer(
            answering: .status(200, "logged in as guest"), .status(200, #"{"result":"error"}"#), .status(200),
            .status(201, #"{"result":"ok"}"#))
        let bench = try ServerRig(server, Self.overland)
        try bench.start(environment: ["TOKEN": "t"])
        try bench.runToEnd()
        let bodies = server.exchanges.map(\.request.body)
        #expect(bodies[..<3].allSatisfy { $0 == bodies[3] })
        #expect(points(server).count == bench.times.count + 30)
        #expect(Set(points(server)).count == bench.times.count)
    }

    /// Compass always answers ok, and mentions that it kept fewer.
    @Test func overlandSkipsOneInSilence() throws {
        let server = try ImitatedServer { request, earlier in
            guard earlier.count < 5 else { return .silence }
            return .status(200, #"{"result":"ok","saved":\#(request.rows().count - (earlier.count == 1 ? 1 : 0))}"#)
        }
        let bench = try ServerRig(server, Self.overland)
        try bench.start(environment: ["TOKEN": "t"])
        let status = try bench.rig.waitForEndpoint { $0["acked"] as? Int == 50 }
        #expect(status["stored"] as? Int == 49)
        // The sixth may be on its way.
        let points = points(server)
        #expect(Set(points).count == points.count)
    }

    // OwnTracks.

    @Test func owntracksSaysTheSameToEverything() throws {
        let server = try ImitatedServer(answering: .status(200, "[]"))
        let bench = try ServerRig(
            server, "profile = \"owntracks-open\"\nvars = { user = \"ada\", tid = \"V7\" }\n", more: fence)
        try bench.runToEnd()
        let objects = server.exchanges.map(\.request.object)
        // What it would drop without a word: arrays, places that are none, topics of another depth.
        let dropped = objects.filter { object in
            let kind = object.string("_type") ?? ""
            guard kind == "location" || kind == "transition", let latitude = object.double("lat") else { return true }
            return !(-90...90).contains(latitude) || object.int("acc") ?? 1 <= 0
                || !object.words("topic").hasPrefix("owntracks/ada/rig")
        }
        #expect(dropped.isEmpty)
        #expect(server.exchanges.allSatisfy { $0.request.query == ["u": "ada", "d": "rig"] })
        let words = objects.filter { $0["_type"] as? String == "transition" }.map { $0["event"] as? String }
        #expect(words == ["enter", "leave"])
        let locations = objects.filter { $0["_type"] as? String == "location" }
        #expect(locations.compactMap { ($0["tst"] as? Int).map { $0 * 1000 } } == bench.times)
    }

    /// As measured: without accuracy a location is dropped, an ENTER without its EXIT freezes the tracker, the time of a
    /// location is not looked at, and the answer is always the same.
    @Test func homeAssistantIsLeftWithTheNewestPlace() throws {
        let server = try ImitatedServer(answering: .status(200, "[]"))
        let bench = try ServerRig(
            server, "profile = \"home-assistant\"\nvars = { user = \"ada\", tid = \"V7\" }\n", more: fence)
        try bench.runToEnd()
        var isFrozen = false
        var place: Int?
        for object in server.exchanges.map(\.request.object) {
            if object["_type"] as? String == "transition" { isFrozen = object["event"] as? String == "enter" }
            guard !isFrozen, (object["acc"] as? Int ?? 0) > 0 else { continue }
            let time = try #require(object["tst"] as? Int)
            #expect(time >= place ?? 0)
            place = time
        }
        #expect(!isFrozen && place.map { $0 * 1000 } == bench.times.last)
        #expect(server.exchanges.allSatisfy { $0.request.object["_type"] as? String == "location" })
        #expect(server.exchanges.count < bench.times.count)
    }

    // Transistor.

    /// The device was deleted there, and the answer would have it stop tracking, which is not the server's business.
    @Test func transistorMayNotStopTheTracking() throws {
        let commands = #"{"background_geolocation":[["stop"],["setConfig",{"distanceFilter":500}]]}"#
        let server = try ImitatedServer { _, earlier in
            (1...7).contains(earlier.count) ? .status(410, commands) : .status(200, commands)
        }
        let bench = try ServerRig(server, "profile = \"transistor\"\nbatch_size = 10\n", follows: true)
        try bench.start()
        try bench.rig.waitForEndpoint {
            $0["state"] as? String == "stopped" && $0["reason"] as? String == "gone"
                && $0["waiting"] as? Int == bench.times.count - 10
        }
        #expect(bench.daemon?.isRunning == true && server.exchanges.count == 8)
        try bench.order("endpoint", "resume", "main")
        try bench.deliverRest()
        let taken = server.exchanges.filter(\.wasTaken).flatMap { $0.request.rows("location") }
        #expect(
            taken.count == bench.times.count && Set(taken.compactMap { $0["uuid"] as? String }).count == taken.count)
    }
}
