import ConfigurationTestSupport
import Glibc
import TestSupport
import Testing
import WaypostCore
import WaypostHost

@testable import Configuration
@testable import Daemon

@Suite struct TokenCommandTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func requests(
        _ script: String, header: String = "", environment: [String: String] = ["PATH": "/usr/bin:/bin"]
    ) throws -> Requests {
        // Read by the shell instead of run: a file that was just written may still be open in a child of another test.
        try directory.write("token", "\(script)\n")
        let text = """
            \(smallest)[[endpoint]]
            base_url = "https://f.example"
            auth = { kind = "token_command", command = ["/bin/sh", "\(directory.path)/token", "two words"]\(header) }
            """
        return try Requests(of: try loaded(text).config.endpoints[0], environment)
    }

    private func problem(_ script: String) throws -> String {
        let requests = try requests(script)
        do {
            _ = try requests.request()
        } catch let problem as CredentialProblem {
            #expect(!problem.isClock)
            return problem.message
        }
        return "no problem"
    }

    @Test(.bug(id: 11)) func whatIsGivenUpBeforeItsCommandEndsRingsNoMore() throws {
        let loop = try EventLoop()
        var command: TokenCommand? = TokenCommand(["/bin/sleep", "100"], environment: [:], loop: loop)
        // Its time is over as soon as the loop turns.
        command?.run(at: loop.now - .seconds(60)) { _ in Issue.record("called back") }
        command = nil
        command = TokenCommand(["/nonexistent/command"], environment: [:], loop: loop)
        command?.run(at: loop.now) { _ in Issue.record("called back") }
        command = nil
        var turns = 0
        try loop.run {
            turns += 1
            return turns > 3
        }
    }

    @Test func takesJSON() throws {
        let script = #"printf '{"access_token":"json-token","token_type":"Bearer","expires_in":"3600"}\n'"#
        let requests = try requests(script, header: #", header = "X-Token: t=${auth.token}""#)
        #expect(try requests.headers() == ["X-Token: t=json-token"])
        #expect(try requests.request().url == "https://f.example/json-token")
    }

    @Test func givesTheCommandNothingOfTheEnvironmentButTwoNames() throws {
        // The shell itself sets PWD and its kin, so the kernel is asked; $1 shows that nothing splits the argument.
        let requests = try requests(
            "printf '%s+' \"$1\" $(tr '\\0' '\\n' < /proc/$$/environ | sort)",
            environment: ["PATH": "/usr/bin:/bin", "CREDENTIALS_DIRECTORY": "/c", "HOME": "/root", "KEY": "k"])
        #expect(
            try requests.headers() == ["Authorization: Bearer two words+CREDENTIALS_DIRECTORY=/c+PATH=/usr/bin:/bin+"])
    }

    @Test func saysWhyThereIsNoToken() throws {
        let rows: [(script: String, words: String)] = [
            ("exit 3", "failed with exit status 3"), ("echo secret-word >&2; kill -9 $$", "was ended by signal 9"),
            ("true", "printed nothing"),
            ("echo; echo secret-word", "printed more than one line, or what no header can hold"),
            ("head -c 1000000 /dev/zero | tr '\\0' x", "printed 64 KiB or more"),
            ("echo '<html><title>Sign in</title></html>'", "printed a web page (\"Sign in\") instead of a token"),
            (#"echo '{"access_token":5}'"#, "gave no valid token response"),
            (#"echo '{"error":"invalid_grant"}'"#, "gave the error invalid_grant"),
            (#"echo '{"error":"secret word"}'"#, "gave the error (unreadable)"),
        ]
        for (script, words) in rows { #expect(try problem(script) == "no token: /bin/sh \(words)", "\(script)") }
    }

    @Test func aFullPipeIsTooMuchAlsoWhenItIsSeenLate() throws {
        let loop = try EventLoop()
        let full = "\(directory.path)/full"
        try directory.write("token", "head -c 65536 /dev/zero | tr '\\0' x; touch \(full); cat /dev/zero\n")
        let command = TokenCommand(
            ["/bin/sh", "\(directory.path)/token"], environment: ["PATH": "/usr/bin:/bin"], loop: loop)
        var answer: Result<[UInt8], TokenReply.Problem>?
        // A loop that was held up for longer than the command may take.
        command.run(at: loop.now + .seconds(-20)) {
            answer = $0
            loop.stop()
        }
        for _ in 0..<6000 where access(full, F_OK) != 0 { usleep(10_000) }
        try loop.run()
        #expect(answer == .failure(.init(message: "printed 64 KiB or more")))
    }

    @Test func killsACommandThatHangsTogetherWithItsChildren() throws {
        let pids = "\(directory.path)/pids"
        let begin = waypostNow()
        #expect(try problem("sleep 600 & echo $$ $! > \(pids); wait") == "no token: /bin/sh did not end within 10 s")
        #expect((9.9...60).contains(waypostNow() - begin))
        let processes = try directory.read("pids").split(whereSeparator: \.isWhitespace).compactMap { Int32($0) }
        #expect(processes.count == 2)
        for process in processes { #expect(isGone(process), "\(process) lives") }
    }

    @Test func doesNotWaitForAChildThatKeepsThePipe() throws {
        let begin = waypostNow()
        let requests = try requests("sleep 20 & echo token")
        #expect(try requests.headers() == ["Authorization: Bearer token"])
        #expect(waypostNow() - begin < 9)
    }

    @Test func runsAtFourFifthsOfTheLifeOfATokenAndAfterARefusalOnceAMinute() throws {
        let script = """
            echo x >> \(directory.path)/runs
            printf '{"access_token":"t%s","expires_in":1000}' $(wc -l < \(directory.path)/runs)
            """
        let requests = try requests(script)
        func token(_ seconds: Int) throws -> String { try requests.request(later: .seconds(seconds)).url }
        #expect(try token(0).hasSuffix("/t1"))
        #expect(try token(799).hasSuffix("/t1"))
        #expect(try token(802).hasSuffix("/t2"))
        // Refused at once: the command ran a moment ago.
        #expect(try requests.refresh(later: .seconds(803)) == .later)
        #expect(try requests.refresh(later: .seconds(870)) == .new)
        #expect(try token(871).hasSuffix("/t3"))
        #expect(try requests.refresh(later: .seconds(872)) == .later)
        #expect(try directory.read("runs") == "x\nx\nx\n")
    }

    @Test func keepsATokenThatStillLivesWhenTheCommandFails() throws {
        let script = """
            test -e \(directory.path)/ran && exit 1
            touch \(directory.path)/ran
            echo '{"access_token":"good","expires_in":1000}'
            """
        let requests = try requests(script)
        #expect(try requests.headers() == ["Authorization: Bearer good"])
        #expect(try requests.headers(later: .seconds(900)) == ["Authorization: Bearer good"])
        #expect(throws: CredentialProblem.self) { try requests.headers(later: .seconds(1010)) }
    }

    @Test func aCommandThatIsGoneIsAProblemOfTheCredential() throws {
        let loop = try EventLoop()
        let command = TokenCommand(["\(directory.path)/none"], environment: [:], loop: loop)
        var answer: Result<[UInt8], TokenReply.Problem>?
        command.run(at: loop.now) {
            answer = $0
            loop.stop()
        }
        #expect(answer == nil)
        try loop.run()
        #expect(
            answer == .failure(.init(message: "\(directory.path)/none does not start: No such file or directory")))
    }

    private func isGone(_ process: Int32) -> Bool {
        // Reaped or, where its parent was not us, on its way: a zombie has no command line.
        for _ in 0..<6000 {
            guard kill(process, 0) == 0, let line = try? commandLine(process), !line.isEmpty else { return true }
            usleep(10_000)
        }
        return false
    }

    private func commandLine(_ process: Int32) throws -> [UInt8]? {
        let descriptor = open("/proc/\(process)/cmdline", O_RDONLY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return readAll(descriptor, bytesMax: 4096)
    }

    private func waypostNow() -> Double {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }
}
