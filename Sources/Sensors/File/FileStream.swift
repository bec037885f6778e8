import WaypostNMEA

/// Which file a stretch of the decoded stream is, so that a place in the stream becomes a place in the file.
struct FileStream {
    var identity: InputFile.Identity
    /// Offset in the decoded stream of the file's first byte: a decoder that continues with another file keeps counting.
    var base: Int64

    func position(_ resume: ResumePoint) -> FilePosition {
        FilePosition(
            device: identity.device, inode: identity.inode,
            resume: ResumePoint(offset: max(0, resume.offset - base), time: resume.time))
    }
}
