import WaypostCore

@testable import Remote

func seconds(_ seconds: Double) -> EventTime { EventTime(nanoseconds: Int64(seconds * 1e9)) }

/// 2026-11-26T12:00:00Z, and seconds from it.
func utc(_ seconds: Double) -> UTCTime { UTCTime(milliseconds: 1_795_694_400_000 + Int64(seconds * 1000)) }

extension DesiredDocument {
    static func read(_ text: String) -> Result<DesiredDocument, DocumentProblems> {
        do throws(DocumentProblems) { return .success(try DesiredDocument(Array(text.utf8))) } catch {
            return .failure(error)
        }
    }

    static func version(_ version: Int64, within seconds: Int = 1800) -> DesiredDocument {
        DesiredDocument(
            device: "van-7", version: version, settings: [RemoteSetting("sampling.bound", .int(version))],
            confirmWithin: .seconds(seconds))
    }
}

extension DocumentProblems {
    var words: [String] { problems.map { "\($0.path): \($0.reason)" } }
}
