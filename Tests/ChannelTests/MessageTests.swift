import Profiles
import Testing
import WaypostCore

@testable import Channel

@Suite("Messages of the channel") struct MessageTests {
    private static func read(_ text: String) throws -> JSONValue { try #require(JSONReader.read(Array(text.utf8))) }

    private static func message(
        _ name: ChannelMessage.Name = .enhanced, _ feature: ChannelFeature = .sample(), skipped: Int = 0,
        bytesMax: Int = 65_536
    ) -> ChannelMessage? {
        ChannelMessage(
            id: "q-1", name: name, feature: feature,
            skipped: (0..<skipped).map { .sample(seconds: Int64($0 - skipped)) }, bytesMax: bytesMax)
    }

    static let feature =
        #"{"type":"Feature","geometry":{"type":"Point","coordinates":[106.7,10.77,5.0]},"#
        + #""properties":{"accuracyHorizontal":4.0,"bearing":90.0,"speed":8.3,"time":1700000000.25}}"#

    @Test func theTwoForms() {
        #expect(
            Self.message()?.data
                == #"{"location":\#(Self.feature),"skippedLocations":[],"intermediateLocations":[],"type":"ACTUAL"}"#)
        #expect(Self.message(.raw)?.data == #"{"location":\#(Self.feature),"skippedLocations":[]}"#)
    }

    @Test func whatIsUnknown() throws {
        let location = Location(
            trackable: "a", time: UTCTime(milliseconds: 2000), at: .zero,
            coordinate: Coordinate(latitudeE7: -900_000_000, longitudeE7: -1_800_000_000), altitudeHAE: -3, hdop: 1.5,
            moving: true)
        let feature = try #require(ChannelFeature(location))
        #expect(
            Self.message(.raw, feature)?.data
                == #"{"location":{"type":"Feature","geometry":{"type":"Point","coordinates":[-180.0,-90.0,-3.0]},"#
                + #""properties":{"accuracyHorizontal":7.5,"bearing":-1.0,"speed":-1.0,"time":2.0}},"skippedLocations":[]}"#
        )
    }

    @Test func oddNumbersStillMakeWhatViewersRead() throws {
        let odd = [0, -1, 359.96, 360, 1e-9, 1e300, -1e300, .nan, .infinity, -.infinity] as [Double]
        for value in odd {
            for accuracy in [1e-9, 3, 1e12] {
                let feature = ChannelFeature(
                    coordinate: Coordinate(latitudeE7: 1, longitudeE7: 1), altitude: value, accuracy: accuracy,
                    bearing: value, speed: value, time: UTCTime(milliseconds: 0))
                let message = try #require(Self.message(.enhanced, feature))
                let location = try #require(try Self.read(message.data)["location"])
                #expect(location.value(at: ["properties", "accuracyHorizontal"])?.number ?? 0 > 0)
                let bearing = try #require(location.value(at: ["properties", "bearing"])?.number)
                #expect(bearing == -1 || (0..<360).contains(bearing))
            }
        }
        // A place that viewers break off at is not sent.
        let beyond = ChannelFeature(
            coordinate: Coordinate(latitudeE7: 900_000_001, longitudeE7: 0), altitude: nil, accuracy: 3, bearing: nil,
            speed: nil, time: UTCTime(milliseconds: 0))
        #expect(Self.message(.enhanced, beyond) == nil)
    }

    @Test func tooManySkippedOnesAreTrimmedFromTheOldest() throws {
        #expect(Self.message(skipped: 100)?.skippedCount == 60)
        let whole = try #require(Self.message(skipped: 60))
        #expect((10_000..<16_384).contains(JSONValue.string(whole.data).bytes.count))
        for bytesMax in stride(from: 16_000, to: 300, by: -437) {
            let message = try #require(Self.message(skipped: 60, bytesMax: bytesMax))
            let escaped = JSONValue.string(message.data).bytes.count - 2
            #expect(escaped <= bytesMax)
            let skipped: [JSONValue] = try Self.read(message.data)["skippedLocations"]?.items ?? []
            let times: [Double] = skipped.compactMap { $0.value(at: ["properties", "time"])?.number }
            #expect(times.count == message.skippedCount && times.last ?? 1_699_999_999.25 == 1_699_999_999.25)
            // Not many more than needed.
            if message.skippedCount < 60 { #expect(escaped > bytesMax - 600) }
        }
        #expect(Self.message(skipped: 60, bytesMax: 200) == nil)
        #expect(Self.message(bytesMax: 0) == nil && Self.message(skipped: 3, bytesMax: -5) == nil)
    }

    @Test func whatIsAFeature() throws {
        let feature =
            #"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2,3]},"properties":{"accuracyHorizontal":1,"bearing":2,"speed":3,"time":2,"floor":0}}"#
        #expect(ChannelSchema.isFeature(try Self.read(feature)))
        let wrong: [(part: String, other: String)] = [
            ("[1,2,3]", "[1,2]"), ("[1,2,3]", "[1,2,3,4]"), ("[1,2,3]", #"["1","2","3"]"#), ("[1,2,3]", "[181,2,3]"),
            (#""accuracyHorizontal":1"#, #""accuracyHorizontal":-1"#), (#""accuracyHorizontal":1,"#, ""),
            (#""floor":0}"#, #""floor":0},"extraProperty":null"#),
        ]
        for (part, other) in wrong {
            #expect(!ChannelSchema.isFeature(try Self.read(feature.replacing(part, with: other))), "\(other)")
        }
    }

    // Which rows ride in which message.

    private static func seconds(_ features: [ChannelFeature]) -> [Int64] {
        features.map { $0.time.milliseconds / 1000 }
    }

    @Test func theNewestSelectedRowIsTheLocation() throws {
        let rows = [row(1), row(2, selected: false), row(3), row(4, selected: false)]
        let choice = try #require(LocationChoice(rows))
        #expect(choice.head == 3 && Self.seconds(choice.skipped) == [1, 2] && choice.passed == 0)
        #expect(LocationChoice([row(1, selected: false)]) == nil && LocationChoice([QueuedLocation]()) == nil)
    }

    @Test func aBacklogIsOneMessage() throws {
        let choice = try #require(LocationChoice((1...500).map { row($0) }))
        #expect(choice.head == 500 && Self.seconds(choice.skipped) == Array(440...499) && choice.passed == 439)
    }

    @Test func skippedOnesNeverGoBackInTime() throws {
        let choice = try #require(LocationChoice([row(1, seconds: 9), row(2, seconds: 3), row(3, seconds: 5), row(4)]))
        #expect(Self.seconds(choice.skipped) == [3, 5, 9])
    }

    @Test func rowsWithoutAnAccuracyAreNotSent() throws {
        let choice = try #require(LocationChoice([row(1, accuracy: nil), row(2), row(3), row(4, accuracy: nil)]))
        #expect(choice.head == 3 && Self.seconds(choice.skipped) == [2] && choice.withoutAccuracy == 2)
    }
}
