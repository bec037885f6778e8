/// The next time of each device, and which comes first: a binary heap with one entry for each device.
struct DueTimes {
    private var times: [Int64]
    /// Devices as a heap by their times.
    private var heap: [Int32]

    /// - Parameter times: in nanoseconds, of device 0, 1, …
    init(_ times: [Int64]) {
        self.times = times
        heap = (0..<Int32(times.count)).sorted { times[Int($0)] < times[Int($1)] }
    }

    /// nil without devices.
    var first: (device: Int, nanoseconds: Int64)? {
        heap.first.map { (Int($0), times[Int($0)]) }
    }

    /// The first device has been served, and is due again then.
    mutating func moveFirst(to nanoseconds: Int64) {
        guard let device = heap.first else { return }
        times[Int(device)] = nanoseconds
        var place = 0
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, times[Int(heap[child + 1])] < times[Int(heap[child])] { child += 1 }
            guard times[Int(heap[child])] < nanoseconds else { break }
            heap[place] = heap[child]
            place = child
        }
        heap[place] = device
    }
}
