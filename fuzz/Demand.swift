/// Ends the run with words, which `precondition` leaves out in an optimised build.
func demand(_ holds: Bool, _ words: @autoclosure () -> String) {
    if !holds { fatalError(words()) }
}
