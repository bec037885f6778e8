/// One attempt at something with a server. Its answer carries it, so that a stray answer acts on nothing.
package struct Attempt: Hashable, Sendable {
    package enum Purpose: Hashable, Sendable {
        /// To send the batch with this id.
        case batch(String)
        /// To send the newest row ahead of its turn.
        case preview(seq: Int64)
        /// To get another credential.
        case refresh
        /// To bind the asset to this device. Lasts until the queue has carried out the order that follows.
        case bind
    }

    /// The endpoint whose cursor it is about.
    package let endpoint: String
    package let purpose: Purpose
    /// Rises with each attempt of the endpoint, and begins again with the process.
    package let number: Int
}
