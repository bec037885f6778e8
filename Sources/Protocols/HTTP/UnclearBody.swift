/// What is wrong with a body that has to be read; the raw value is the words for people.
package enum UnclearBody: String, Hashable, Sendable, CaseIterable {
    case cut = "the body is cut short or too long"
    case encoded = "the body is compressed, which was not asked for"
    case notJSON = "the body is not JSON"
    case repeatedName = "the body has two values under one name"
    case noList = "the body lacks the list of refused rows"
    case otherForm = "the list of refused rows has another form"
    case incompleteList = "the list does not have one entry for each row"
    case unknownRow = "the body names rows that were not sent"
}
