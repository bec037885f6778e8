"""The scenes of scripts/live/hostile: a service of the tracking channel, and viewers, that do their worst."""
import base64, datetime, functools, hashlib, json, os, pathlib, signal, socket, struct, subprocess, sys, tempfile, threading, time

root = pathlib.Path(__file__).resolve().parent.parent.parent
waypost = os.environ.get("WAYPOST") or subprocess.run(
    [root / "scripts/build", "--path"], capture_output=True, text=True, check=True).stdout.strip() + "/waypost"
HEARTBEAT, ACK, CONNECTED, ERROR, ATTACH, ATTACHED, DETACHED, PRESENCE, MESSAGE, SYNC, AUTH = 0, 1, 4, 9, 10, 11, 13, 14, 15, 16, 17
CHANNEL, MODES = "tracking:van", 15 << 16
failures = []


def check(what, holds, found=""):
    print(f"  {'ok  ' if holds else 'FAIL'} {what}{'' if holds else f': {found}'}", flush=True)
    if not holds:
        failures.append(what)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


class Receiver:
    """A vehicle at 10 m/s over TCP, five fixes a second with the time of this host."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.metres = self.server.getsockname()[1], 0.0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.server.accept()
            try:
                while True:
                    self.metres += 2
                    latitude = 52.5 + self.metres / 111_320
                    now = datetime.datetime.now(datetime.timezone.utc)
                    stamp = now.strftime("%H%M%S.%f")[:9]
                    place = f"{int(latitude):02d}{latitude % 1 * 60:08.5f},N,01324.00000,E"
                    for body in (f"GPRMC,{stamp},A,{place},19.44,0.0,{now.strftime('%d%m%y')},,,A",
                                 f"GPGGA,{stamp},{place},1,09,0.9,40.0,M,40.0,M,,"):
                        sum = functools.reduce(lambda a, b: a ^ b, body.encode())
                        client.sendall(f"${body}*{sum:02X}\r\n".encode())
                    time.sleep(max(0.01, 0.2 - time.time() % 0.2))
            except OSError:
                pass


class Connection:
    """One WebSocket of the daemon."""

    def __init__(self, service, sock):
        self.service, self.sock, self.sent, self.is_read, self.lock = service, sock, [], True, threading.Lock()
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        self.target = head.split()[1].decode()
        key = next(line.split(b":")[1].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        sock.sendall(b"HTTP/1.1 101 s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")

    def say(self, **frame):
        data = json.dumps(frame).encode()
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data)) if len(data) < 65536 \
            else b"\x7f" + struct.pack("!Q", len(data))
        with self.lock:
            self.sock.sendall(b"\x81" + size + data)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            if not (more := self.sock.recv(count - len(data))):
                raise OSError("closed")
            data += more
        return data

    def frames(self):
        while True:
            while not self.is_read:
                time.sleep(0.1)
            first, length = self.exactly(2)
            length &= 127
            if length > 125:
                length = int.from_bytes(self.exactly(2 if length == 126 else 8), "big")
            mask, data = self.exactly(4), self.exactly(length)
            if first & 15 == 1:
                frame = json.loads(bytes(byte ^ mask[index & 3] for index, byte in enumerate(data)))
                self.sent.append((time.monotonic(), frame))
                yield frame

    def count(self, action):
        return sum(frame["action"] == action for _, frame in self.sent)


class Service:
    """`open` says what is answered to a connection; messages and presence are acknowledged unless `acknowledges` is off."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        self.port, self.connections, self.acknowledges, self.bad_tokens = self.server.getsockname()[1], [], True, set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            sock, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            connection = Connection(self, sock)
            self.connections.append(connection)
            if any(f"accessToken={token}" in connection.target for token in self.bad_tokens):
                return connection.say(action=ERROR, error={"code": 40142, "statusCode": 401, "message": "token expired"})
            self.connected(connection)
            threading.Thread(target=self.beat, args=(connection,), daemon=True).start()
            for frame in connection.frames():
                if frame["action"] == ATTACH:
                    self.attached(connection)
                elif frame["action"] == AUTH:
                    self.connected(connection)
                elif frame["action"] in (PRESENCE, MESSAGE) and self.acknowledges:
                    connection.say(action=ACK, msgSerial=frame["msgSerial"], count=1)
        except (OSError, IndexError, StopIteration):
            pass

    def connected(self, connection):
        connection.say(action=CONNECTED, connectionId="c", connectionDetails={
            "connectionKey": "k", "maxMessageSize": 65536, "maxIdleInterval": 15000, "connectionStateTtl": 120000})

    def attached(self, connection):
        connection.say(action=ATTACHED, channel=CHANNEL, flags=MODES, channelSerial="s")

    def beat(self, connection):
        try:
            while True:
                time.sleep(5)
                connection.say(action=HEARTBEAT)
        except OSError:
            pass

    @property
    def last(self):
        return self.connections[-1]


def member(number, size=0, action=1):
    data = json.dumps({"type": "SUBSCRIBER", "note": "x" * size} if size else {"type": "SUBSCRIBER"})
    return {"action": action, "clientId": f"viewer-{number}", "connectionId": f"of-{number}", "id": f"of-{number}:0:0", "data": data}


class Daemon:
    def __init__(self, service, more=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="waypost-hostile-"))
        self.token = self.folder / "token"
        self.token.write_text("good")
        self.token.chmod(0o600)
        (self.folder / "waypost.toml").write_text(f"""
[device]
id = "van"
[source]
kind = "tcp"
host = "127.0.0.1"
port = {Receiver().port}
[outbox]
path = "{self.folder}/outbox.db"
[control]
socket = "{self.folder}/control.sock"
[[channel]]
name = "live"
url = "ws://127.0.0.1:{service.port}"
auth = {{ kind = "bearer", token = "file:{self.token}" }}
{more}
""")

    def start(self):
        self.process = subprocess.Popen(
            [waypost, "run", "--config", self.folder / "waypost.toml"], stdout=subprocess.DEVNULL,
            stderr=open(self.folder / "log", "w"))
        return self

    def status(self):
        run = subprocess.run(
            [waypost, "status", "--json", "--config", self.folder / "waypost.toml"], capture_output=True, text=True)
        try:
            return json.loads(run.stdout)
        except ValueError:
            return {}

    def channel(self):
        return (self.status().get("channels") or [{}])[0]

    def problem(self, words):
        return any(words in problem for problem in self.status().get("problems", []))

    def lines(self):
        return (self.folder / "log").read_text().splitlines()

    def rss(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/status").read_text().split("VmRSS:")[1].split()[0])

    def processor(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check("it ends well", self.process.wait(20) == 0)


def connected(daemon, service):
    check("it connects", until(lambda: service.connections and service.last.count(ATTACH) > 0), daemon.lines()[-3:])
    until(lambda: daemon.channel().get("state") == "connected")


def token():
    """Yesterday's token at the start, and a good one a few seconds later."""
    service = Service()
    service.bad_tokens = {"yesterday"}
    daemon = Daemon(service)
    daemon.token.write_text("yesterday")
    daemon.start()
    until(lambda: len(service.connections) > 1, 5)
    time.sleep(2)
    attempts = len(service.connections)
    check("a refused token is tried seldom", attempts <= 3, attempts)
    check("and is a problem", daemon.problem("refuses the credential"), daemon.status().get("problems"))
    daemon.token.write_text("good")
    check("a good one is used by itself", until(lambda: daemon.channel().get("state") == "connected", 60), daemon.channel())
    check("and ends the problem", not daemon.status().get("problems"), daemon.status().get("problems"))
    daemon.stop()


def storm(seconds=8):
    """Frames that want an answer come without end, from a service that reads nothing."""
    detached = {"action": DETACHED, "channel": CHANNEL, "error": {"code": 90198, "statusCode": 500}}
    attached = {"action": ATTACHED, "channel": CHANNEL, "flags": MODES, "channelSerial": "s"}
    details = {"connectionKey": "k", "maxMessageSize": 65536, "maxIdleInterval": 15000}
    for storm in ([detached], [attached], [detached, attached],
                  [{"action": AUTH}, {"action": CONNECTED, "connectionId": "c", "connectionDetails": details}]):
        print(f"  actions {[frame['action'] for frame in storm]}")
        service = Service()
        daemon = Daemon(service).start()
        connected(daemon, service)
        until(lambda: daemon.channel().get("published", 0) > 0)
        connection, before, busy, frames = service.last, daemon.rss(), daemon.processor(), 0
        connection.is_read = False
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                for frame in storm:
                    connection.say(**frame)
                    frames += 1
        except OSError:
            pass
        growth = daemon.rss() - before
        connection.is_read = True
        time.sleep(2)
        numbers = {action: connection.count(action) for action in (ATTACH, PRESENCE, AUTH)}
        print(f"  {frames} frames; RSS grew by {growth} KiB, {daemon.processor() - busy:.1f} s of processor; it sent "
              f"{numbers[ATTACH]} ATTACH, {numbers[PRESENCE]} PRESENCE, {numbers[AUTH]} AUTH over {len(service.connections)} connections")
        check("memory is bounded", growth < 4096, growth)
        check("answers are paced", sum(numbers.values()) < 30, numbers)
        check("the journal is not filled", len(daemon.lines()) < 60, len(daemon.lines()))
        daemon.stop()


def viewer(seconds=20, rate=50):
    """A viewer enters and leaves many times a second."""
    service = Service()
    daemon = Daemon(service).start()
    connected(daemon, service)
    connection, serial, start, busy = service.last, 0, time.monotonic(), daemon.processor()
    while time.monotonic() - start < seconds:
        for action in (2, 3):
            serial += 1
            item = {**member(1, action=action), "id": f"of-1:{serial}:0"}
            connection.say(action=PRESENCE, channel=CHANNEL, presence=[item])
        time.sleep(max(0, start + serial / 2 / rate - time.monotonic()))
    lines = len(daemon.lines())
    print(f"  entered {serial // 2} times in {seconds} s: {lines} lines, {daemon.processor() - busy:.1f} s of processor, "
          f"{connection.count(PRESENCE)} PRESENCE, {connection.count(MESSAGE)} MESSAGE")
    check("the journal is not filled", lines < 60, daemon.lines()[-3:])
    check("the viewer that left is gone", until(lambda: daemon.channel()["trackables"]["van"]["viewers"] == 0), daemon.channel())
    daemon.stop()


def crowd():
    """Members whose presence is large, too many of them, and a frame that is too large."""
    service = Service()
    daemon = Daemon(service).start()
    connected(daemon, service)
    connection = service.last
    viewers = lambda: daemon.channel()["trackables"]["van"]["viewers"]
    connection.say(action=SYNC, channel=CHANNEL, channelSerial="1:", presence=[member(number, 700) for number in range(200)])
    check("200 large members are heard", until(lambda: viewers() == 200, 5), (viewers(), daemon.lines()[-2:]))
    connection = service.last
    connection.say(action=SYNC, channel=CHANNEL, channelSerial="2:", presence=[member(number) for number in range(300)])
    check("more than 250 are counted up to there", until(lambda: viewers() == 250, 5), viewers())
    check("the others are a problem", daemon.problem("50 reports of others"), daemon.status().get("problems"))
    connection.say(action=SYNC, channel=CHANNEL, channelSerial="3:", presence=[member(number, 1500) for number in range(200)])
    check("a frame of 300 KiB is a problem", until(lambda: daemon.problem("too large"), 5), daemon.status().get("problems"))
    connection.say(action=SYNC, channel=CHANNEL, channelSerial="4:", presence=[member(1)])
    check("but the channel goes on", until(lambda: viewers() == 1, 5), viewers())
    check("over the same connection", len(service.connections) == 1, len(service.connections))
    print(f"  RSS {daemon.rss()} KiB")
    daemon.stop()


def silence():
    """The service beats, and never answers what is published."""
    service = Service()
    service.acknowledges = False
    daemon = Daemon(service).start()
    connected(daemon, service)
    check("a message that is never acknowledged is a problem", until(lambda: daemon.problem("not acknowledged"), 80),
          daemon.status().get("problems"))
    check("also in the journal", any("not acknowledged" in line for line in daemon.lines()), daemon.lines()[-3:])
    service.acknowledges = True
    for _, frame in service.last.sent:
        if "msgSerial" in frame:
            service.last.say(action=ACK, msgSerial=frame["msgSerial"], count=1)
    check("until it is", until(lambda: not daemon.problem("not acknowledged"), 10), daemon.status().get("problems"))
    daemon.stop()


scenes = [token, storm, viewer, crowd, silence]
for scene in scenes:
    if len(sys.argv) == 1 or scene.__name__ in sys.argv[1:]:
        print(f"{scene.__name__}: {scene.__doc__}")
        try:
            scene()
        except Exception as error:
            check(f"the scene {scene.__name__} ends", False, repr(error))
sys.exit(f"hostile: {len(failures)} of the checks failed" if failures else 0)
