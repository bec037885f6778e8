import WaypostCore
import WaypostTracking

/// One decision about motion with its evidence against the thresholds, in numbers and in words.
struct Decision {
    var reason: MotionReason
    /// Unix milliseconds; nil before the first dated fix.
    var decided: Int64?
    var evidence: MotionEvidence
    /// Metres of agreed movement that decide; nil where evidence does not.
    var evidenceMin: Double?
    /// Metres from the place beyond which the asset has left; nil where distance does not decide.
    var distanceMax: Double?
    /// A sentence.
    var words: String
    /// What the other decision would have needed; nil where nothing sensible can be said.
    var other: String?

    init(_ change: MotionChange, _ settings: MotionDetector.Settings) {
        reason = change.reason
        decided = change.decided?.milliseconds
        evidence = change.evidence
        evidenceMin = change.evidence.needed
        switch change.reason {
        case .start:
            words = "First seen here."
            if let speed = evidence.speed, speed >= ReplayStory.doubtfulSpeed {
                words += " The positions stayed at one place, although the receiver says \(InWords.speed(speed))."
            }
        case .speed:
            distanceMax = settings.stationaryRadius
            words = "Fixes agreed on \(metres(evidence.evidence)) of movement"
            if let needed = evidence.needed {
                // Within the circle only speed can have decided, with which less evidence is enough.
                let isSurge = evidence.distance <= settings.stationaryRadius && needed < settings.startEvidence
                words += (isSurge ? "; at this speed " : "; ") + "\(metres(needed)) start a trip."
                let excess = metres(evidence.evidence - needed)
                other = "With \(excess) less agreed movement it would have counted as parked."
            } else {
                words += "."
            }
        case .fence:
            distanceMax = settings.stationaryRadius
            words = "It left the circle of \(metres(settings.stationaryRadius)) around the place where it was parked."
            other = "Within the circle \(metres(settings.startEvidence)) of agreed movement would have been needed."
        case .backupFence:
            distanceMax = settings.backupRadius
            words =
                "It was \(metres(evidence.distance)) from the place where it was parked; beyond "
                + "\(metres(settings.backupRadius)) no other evidence is needed."
            other = "\(metres(evidence.distance - settings.backupRadius)) nearer it would have counted as parked."
        case .stopTimeout:
            distanceMax = settings.stationaryRadius
            words = "It stood for \(duration(settings.stopTimeout)) (stop_timeout)."
            other =
                "\(metres(evidence.needed ?? settings.resumeEvidence)) of agreed movement within that time would have continued the trip; "
                + "at the end there were \(metres(evidence.evidence))."
        case .noFix:
            words = "No fix was believed for \(duration(settings.noFixTimeout)) (no_fix_timeout)."
            other = "A fix within that time would have continued the trip."
        case .gap:
            words = change.moving ? "It was elsewhere when fixes came again." : "It was still when fixes came again."
        case .power:
            words = change.moving ? "External power came." : "External power went off while it stood."
            if !change.moving {
                other = "With power it would have been parked after \(duration(settings.stopTimeout)) of standing."
            }
        case .movementSource:
            words = "A movement sensor reported first; \(metres(evidence.evidence)) of agreed movement followed."
        case .schedule:
            words = "The hours in which it is tracked ended."
        case .pace:
            words = "It was set by `waypost pace` or `start_moving`."
        }
    }
}

private func metres(_ value: Double) -> String { InWords.distance(max(0, value)) }

private func duration(_ value: Duration) -> String { InWords.span(milliseconds: value.milliseconds) }
