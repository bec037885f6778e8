@testable import WaypostCore

/// Ends the run with words, which `precondition` leaves out in an optimised build.
func demand(_ holds: Bool, _ words: @autoclosure () -> String) {
    if !holds { fatalError(words()) }
}

/// Ends the run with a fix that no receiver can have had.
func demandPossible(_ fix: Fix) {
    demand((0...86_400_999).contains(fix.timeOfDay), "time of day")
    demand(abs(Int(fix.coordinate.latitudeE7)) <= 900_000_000, "latitude")
    demand(abs(Int(fix.coordinate.longitudeE7)) <= 1_800_000_000, "longitude")
    if let accuracy = fix.horizontalAccuracy { demand(accuracy.isFinite && accuracy > 0, "accuracy") }
    if let course = fix.course { demand((0...360).contains(course), "course") }
    if let speed = fix.speed { demand(speed.isFinite && speed >= 0, "speed") }
}
