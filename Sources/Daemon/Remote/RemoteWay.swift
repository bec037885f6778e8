/// How documents and commands come from a server, and how it learns what became of them.
protocol RemoteWay: AnyObject {
    /// Documents have to be asked for; otherwise they come by themselves.
    var isAsked: Bool { get }
    /// Documents come from the server that takes the rows: its silence says something about both.
    var isOfEndpoint: Bool { get }
    /// Called with what comes by itself.
    var hear: (RemoteMessage) -> Void { get set }

    /// - Parameters:
    ///   - known: the version that needs no answer; 0 = none.
    ///   - done: called later, once.
    func fetch(known: Int64, _ done: @escaping (RemoteFetch) -> Void)
    /// - Parameters:
    ///   - state: a JSON object, in place of the last one.
    ///   - done: called once.
    func report(_ state: [UInt8], _ done: @escaping (RemoteDispatch) -> Void)
    /// - Parameter answer: to a command, a JSON object. One that gets lost is not sent again: the server can repeat the command.
    func answer(_ answer: [UInt8])
}

/// What comes by itself. Whether it is signed rightly is not decided yet.
enum RemoteMessage {
    case document([UInt8], signature: String?)
    /// The server has withdrawn it.
    case noDocument
    /// - Parameter isRetained: the broker keeps it and delivers it at each connection.
    case command([UInt8], signature: String?, isRetained: Bool)
    /// It will not come, for people; nil = it will.
    case problem(String?)
}

/// What a server answered to the question for a document.
enum RemoteFetch {
    case document([UInt8], signature: String?)
    /// It has none, or none that is newer.
    case nothing
    case failed(String)
}

/// What became of a report.
enum RemoteDispatch {
    /// It was taken, or never will be.
    case settled
    /// It is to be sent again. The server was not reached, or could not take it.
    case failed
}
