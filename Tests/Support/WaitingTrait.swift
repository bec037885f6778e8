import Foundation
import Testing

/// For suites whose tests mostly wait for another program: many of them run at once, each on a thread of its own.
///
/// Otherwise there are as many threads as processors, and a test that waits holds one.
package struct WaitingTrait: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(WaitingThreads.shared) { try await function() }
    }
}

extension Trait where Self == WaitingTrait {
    package static var waiting: Self { Self() }
}

private final class WaitingThreads: TaskExecutor {
    static let shared = WaitingThreads()

    /// More at once, and the programs that they start keep each other waiting.
    private static let count = 10

    private let queue: OperationQueue

    private init() {
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = Self.count
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.addOperation { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
