/// What came out of the bytes and what was dropped, by cause. Each is a running total.
public struct NMEACounters: Hashable, Sendable, Codable {
    public var bytes = 0
    /// Complete sentences with a valid checksum, known type or not.
    public var sentences = 0
    public var fixes = 0
    public var voidEpochs = 0
    public var checksumErrors = 0
    /// A sentence of a type that needs a checksum came without one.
    public var missingChecksums = 0
    public var tooLong = 0
    /// A byte outside 0x20…0x7E, or a new start, cut a sentence off.
    public var badBytes = 0
    /// Bytes that are part of no whole sentence, line ends apart; of gpsd, bytes of unreadable lines.
    public var strayBytes = 0
    /// Lines of a log that are neither a sentence nor an object of gpsd; 0 for what is no log.
    public var unknownLines = 0
    /// A field of a known sentence was unreadable; the rest of the sentence is used.
    public var badFields = 0
    /// Not an error.
    public var unknownTypes = 0
    /// Sentences of an epoch that was already emitted.
    public var late = 0
    /// Fixes without a date.
    public var dateless = 0
    /// Epochs that came again with the time of the one before.
    public var repeats = 0
    /// Sentences of another source that has no position, between those of a fix.
    public var straySentences = 0
    /// Fixes whose GGA has a quality that is not known.
    public var unknownQualities = 0
    /// Fixes whose GSA says that there is none.
    public var modeConflicts = 0
    /// Dates that were not believed.
    public var datesRefused = 0

    public init() {}

    /// What contradicted the fix beside it. The fix counted all the same.
    public var disagreeing: Int { straySentences + unknownQualities + modeConflicts }
}
