"""Scenarios of scripts/live/remote: what a server can do to the unmodified daemon, and what it cannot."""
import datetime, gzip, hashlib, hmac, json, os, pathlib, pty, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time, tty
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from proof.daemon import Shim
from proof.drive import checksummed
from rig import WAYPOST, Daemon, free_port, listens, within

mosquitto = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin") or sys.exit("remote: mosquitto is not here")
failures = []


def ok(what, condition, detail=""):
    print(f"{'ok   ' if condition else 'FAIL '} {what}{'' if condition else f': {detail}'}", flush=True)
    if not condition:
        failures.append(what)


class Device(Daemon):
    """With a table [remote], and a clock that is synchronised, off by some seconds."""

    def __init__(self, folder, url, source, remote, endpoint="", clock=0, profile="waypost"):
        super().__init__(folder, url, source, 'batch_window = "1s"\n' + endpoint + f"\n[remote]\n{remote}", profile=profile)
        self.shim = Shim(self.folder, self.folder)
        self.shim.step_clock(clock)

    def start(self):
        with open(self.folder / "waypost.log", "ab") as output:
            self.process = subprocess.Popen(
                [WAYPOST, "run", "--config", self.config], stdout=output, stderr=output,
                env=os.environ | self.shim.environment | {"WAYPOST_SHIM_SYNCHRONISED": "1"})
        return self

    def remote(self):
        return self.status().get("remote") or {}

    def places(self):
        return ((self.status().get("motion") or {}).get("geofences") or {}).get("sources") or []

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4


class Receiver:
    """A serial line at 1 Hz; opened again, it has no position for `warm` seconds."""

    def __init__(self, warm=0):
        self.warm, self.warm_until = warm, 0
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.asleep = True
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        opened = 0
        poll = select.poll()
        poll.register(self.master, 0)
        while True:
            time.sleep(max(0.05, 1 - time.time() % 1))
            # Nobody has the other end open.
            was, self.asleep = self.asleep, any(event & select.POLLHUP for _, event in poll.poll(0))
            if was and not self.asleep:
                opened += 1
                self.warm_until = time.time() + (self.warm if opened > 1 else 0)
            now = datetime.datetime.now(datetime.timezone.utc)
            has_fix = time.time() >= self.warm_until
            place = "4700.00000,N,00800.00000,E,0.0,0.0" if has_fix else ",,,,,"
            line = checksummed(f"GPRMC,{now:%H%M%S}.00,{'A' if has_fix else 'V'},{place},{now:%d%m%y},,,{'A' if has_fix else 'N'}")
            try:
                os.write(self.master, line)
            except OSError:
                pass


class Drive:
    """A drive at 1 Hz to a port."""

    def __init__(self):
        self.port = free_port()
        threading.Thread(target=self.run, daemon=True).start()

    @property
    def source(self):
        return f'kind = "udp"\nhost = "127.0.0.1"\nport = {self.port}'

    def run(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            while True:
                now = datetime.datetime.now(datetime.timezone.utc)
                minutes = now.minute + now.second / 60
                line = f"GPRMC,{now:%H%M%S}.00,A,47{minutes:08.5f},N,00800.00000,E,60.0,0.0,{now:%d%m%y},,,A"
                out.sendto(checksummed(line), ("127.0.0.1", self.port))
                time.sleep(1)


class Server(ThreadingHTTPServer):
    """Takes rows, offers a document, and sends commands with its answers."""

    def __init__(self):
        self.rows, self.reports, self.answers, self.commands = [], [], [], []
        self.document, self.announced, self.headers, self.status, self.fences = b"", None, {}, 200, b""
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """The device ends in the middle of a request."""

    def offer(self, version, settings, device="van-7", within="1m", announced=None, **more):
        self.document = json.dumps({"device": device, "version": version, "set": settings, "confirm_within": within} | more).encode()
        self.announced = version if announced is None else announced

    @property
    def table(self):
        return f'settings_url = "{self.url}/settings"\nreported_url = "{self.url}/reported"\npoll = "1m"\nallow = ["sampling", "resolution"]'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", headers={}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/fences":
            return self.answer(200, self.server.fences)
        if self.headers["If-None-Match"] == f'"{self.server.announced}"' or not self.server.document:
            return self.answer(304)
        self.answer(200, self.server.document, self.server.headers)

    def do_PUT(self):
        self.server.reports.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(204)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
        if self.path == "/reported":
            self.server.answers.append(body)
            return self.answer(204)
        headers = {}
        if self.server.announced is not None:
            headers["Waypost-Settings"] = str(self.server.announced)
        if self.server.commands:
            headers["Waypost-Command"] = self.server.commands.pop(0)
        if self.server.status == 200:
            self.server.rows += [row["seq"] for row in body["locations"]]
        self.answer(self.server.status, b"", headers)

    def log_message(self, *_):
        pass


class Broker:
    def __init__(self, folder):
        self.port = free_port()
        (folder / "mosquitto.conf").write_text(f"user root\nlistener {self.port} 127.0.0.1\nallow_anonymous true\n")
        log = open(folder / "mosquitto.log", "ab")
        self.process = subprocess.Popen([mosquitto, "-c", folder / "mosquitto.conf"], stdout=log, stderr=log)
        if not within(10, lambda: listens(self.port)):
            sys.exit("remote: mosquitto does not listen")
        self.messages = []
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        self.client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        self.client.on_message = lambda _, __, message: self.messages.append((time.monotonic(), message))
        self.client.connect("127.0.0.1", self.port)
        self.client.loop_start()

    def bodies(self, topic):
        return [(at, json.loads(m.payload)) for at, m in list(self.messages) if m.topic in (f"waypost/van-7/{topic}", f"fleet/van-7/{topic}")]


def command(id, do, ahead=30, clock=0, **more):
    expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=ahead + clock)
    return json.dumps({"id": id, "do": do, "expires": expires.strftime("%Y-%m-%dT%H:%M:%SZ")} | more)


def locate(folder):
    """A parked vehicle is asked where it is, while its receiver sleeps"""
    broker = Broker(folder)
    receiver = Receiver(warm=30)
    device = Device(
        folder, f"mqtt://127.0.0.1:{broker.port}", f'kind = "serial"\npath = "{receiver.path}"',
        'commands = ["locate", "status"]', profile="waypost-mqtt")
    device.config.write_text(device.config.read_text().replace(
        "[sampling]", '[receiver]\nsleep = true\nsettle = "5s"\nprobe = "1h"\nprobe_on = "5s"\n[sampling]'))
    device.start()
    ok("it parks, and its receiver sleeps", within(120, lambda: receiver.asleep and device.status().get("source", {}).get("state") == "asleep"), device.said())
    broker.client.publish("waypost/van-7/cmd", command("c-0", "status"), qos=1)
    ok("the broker's command is answered", within(5, lambda: broker.bodies("cmd/ack")), device.said())
    result = (broker.bodies("cmd/ack") or [(0, {})])[0][1].get("result", {})
    ok("a status without a position", result.get("source") == "asleep" and "47." not in json.dumps(result), result)
    began = time.monotonic()
    broker.client.publish("waypost/van-7/cmd", command("c-1", "locate"), qos=1)
    found = within(70, lambda: [at for at, body in broker.bodies("location") if body.get("event") == "requested"]) or [began + 999]
    ok("its fix is at the server within 40 s of the command, with a warm start of 30 s", 29 < found[0] - began <= 40, found[0] - began)
    print(f"      {found[0] - began:.1f} s")
    acks = lambda: [body for _, body in broker.bodies("cmd/ack") if body["id"] == "c-1"]
    ok("the command is answered", within(5, acks) == [{"id": "c-1", "ok": True}], acks())
    ok("the receiver sleeps again", within(30, lambda: receiver.asleep), device.said())
    device.stop()


def flood(folder):
    """10,000 commands a minute"""
    broker, drive = Broker(folder), Drive()
    device = Device(folder, f"mqtt://127.0.0.1:{broker.port}", drive.source, 'commands = ["flush", "status"]', profile="waypost-mqtt").start()
    ok("it uploads", within(30, lambda: broker.bodies("location")), device.said())
    before, began, rss = device.cpu(), time.monotonic(), device.rss()
    for number in range(3333):
        broker.client.publish("waypost/van-7/cmd", command(f"c-{number}", "flush"), qos=1)
        time.sleep(max(0, began + (number + 1) * 0.006 - time.monotonic()))
    busy = (device.cpu() - before) / (time.monotonic() - began)
    acks = [body for _, body in broker.bodies("cmd/ack")]
    done = [body["id"] for body in acks if body.get("ok")]
    ok("thirty are carried out, and as many refusals are answered", len(done) == 30 and len(acks) <= 60, (len(done), len(acks)))
    ok("it costs less than a fifth of a core, and no memory", busy < 0.2 and device.rss() < rss + 2048, (busy, rss, device.rss()))
    print(f"      {100 * busy:.1f} % of a core, {device.rss() - rss} KiB more")
    count = len(broker.bodies("location"))
    ok("locations go on", within(30, lambda: len(broker.bodies("location")) > count), device.said())
    ok("each once", len({b["seq"] for _, b in broker.bodies("location")}) == len(broker.bodies("location")))
    device.stop()


def kept(folder):
    """A document and a command that the broker keeps"""
    broker, drive = Broker(folder), Drive()
    topic = "waypost/van-7/"
    document = {"device": "van-7", "version": 3, "set": {"sampling.rule": "both"}, "confirm_within": "1m"}
    broker.client.publish(topic + "settings/desired", json.dumps(document), qos=1, retain=True)
    broker.client.publish(topic + "cmd", command("c-1", "flush", ahead=55), qos=1, retain=True)
    device = Device(folder, f"mqtt://127.0.0.1:{broker.port}", drive.source, 'allow = ["sampling"]\ncommands = ["flush"]', profile="waypost-mqtt").start()
    state = lambda: [body["state"] for _, body in broker.bodies("settings/reported")]
    ok("the document is on trial, and confirmed by the next row", within(30, lambda: state()[-1:] == ["applied"]), (state(), device.said()))
    late = []
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_connect = lambda client, *_: client.subscribe(topic + "settings/reported", qos=1)
    client.on_message = lambda _, __, message: late.append(message.retain)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    ok("who comes later sees the report", within(10, lambda: late) == [True], late)
    code = lambda: [body["error"]["code"] for _, body in broker.bodies("cmd/ack") if "error" in body]
    ok("a kept command is refused", within(10, code) == ["retained"], code())
    device.stop()


def interval(folder):
    """A document after which nothing is recorded for a day"""
    server, drive = Server(), Drive()
    device = Device(folder, server.url, drive.source, server.table).start()
    server.offer(1, {"sampling.rule": "interval", "resolution.default.interval": "1d"})
    ok("it is in force", within(90, lambda: device.remote().get("in_force") == 1), device.said())
    server.offer(2, {"sampling.rule": "either"})
    ok("the next one comes by the poll, though nothing is uploaded", within(200, lambda: device.remote().get("in_force") == 2), device.remote())
    rows = len(server.rows)
    ok("and locations with it", within(60, lambda: len(server.rows) > rows), device.said())
    device.stop()


def wrong(folder):
    """Documents that are none, and a server that is away"""
    server, drive = Server(), Drive()
    device = Device(folder, server.url, drive.source, server.table).start()
    server.document, server.announced = b'{"device":"van-7","version":9223372036854775808,"set":{}}', 2**63
    ok("a version of 2^63 is refused", within(130, lambda: "version" in device.remote().get("refused", "")), device.remote())
    server.document, server.announced = b'{"device":"van-7","version":1,"set":{}}' + b" " * 16384, 1
    ok("16 KiB and more are refused", within(130, lambda: "16 KiB" in device.remote().get("refused", "")), device.remote())
    server.offer(2, {"sampling.rule": "both"}, device="another")
    ok("that of another device is refused", within(130, lambda: "another device" in device.remote().get("refused", "")), device.remote())
    server.offer(3, {"endpoint.base_url": "https://evil.example", "sampling.rule": "both"})
    ok("a forbidden key rejects the whole", within(130, lambda: device.remote().get("state") == "rejected"), device.remote())
    ok("and the server is told which", within(10, lambda: server.reports and server.reports[-1].get("rejected") == {"endpoint.base_url": "not allowed"}), server.reports[-1:])
    server.offer(4, {"sampling.rule": "both"})
    ok("a good one is in force", within(130, lambda: device.remote().get("in_force") == 4 and device.remote().get("state") == "applied"), device.remote())
    device.stop()
    # The documents' server never answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = device.config.read_text().replace(f"{server.url}/settings", f"http://127.0.0.1:{silent.getsockname()[1]}/settings")
        device.config.write_text(text)
        device.start()
        rows = len(server.rows)
        ok("without answers of the documents' server locations go on", within(30, lambda: len(server.rows) > rows), device.said())
        ok("what was confirmed stays", device.remote().get("in_force") == 4, device.remote())
        ok("and status says what is wrong", within(120, lambda: "cannot be fetched" in device.remote().get("problem", "")), device.remote())
        device.stop()


def dies(folder):
    """Settings with which the daemon dies soon after each start"""
    server, drive = Server(), Drive()
    device = Device(folder, server.url, drive.source, server.table).start()
    server.status = 503
    server.offer(1, {"sampling.rule": "both"}, within="1d")
    ok("on trial", within(90, lambda: device.remote().get("in_force") == 1), device.remote())
    for _ in range(2):
        device.stop(signal.SIGKILL)
        device.start()
        within(10, device.status)
    ok("the second start returns to the file", within(10, lambda: device.remote().get("state") == "reverted" and "in_force" not in device.remote()), device.remote())
    server.status = 200
    server.offer(2, {"sampling.rule": "both"})
    ok("confirmed", within(150, lambda: device.remote().get("state") == "applied"), device.remote())
    for _ in range(5):
        device.stop(signal.SIGKILL)
        device.start()
        within(10, device.status)
    ok("the fifth short run returns to the file", within(10, lambda: device.remote().get("state") == "reverted" and "in_force" not in device.remote()), device.remote())
    rows = len(server.rows)
    ok("locations go on", within(30, lambda: len(server.rows) > rows), device.said())
    device.stop()


def clock(folder):
    """A clock at 1970, and signatures of another device"""
    server, drive = Server(), Drive()
    (folder / "key").write_text("secret")
    os.chmod(folder / "key", 0o600)
    device = Device(
        folder, server.url, drive.source, server.table + f'\ncommands = ["flush"]\nsecret = "file:{folder}/key"', clock=-int(time.time()) + 100)

    def sign():
        signed = b"waypost-settings-v1\n" + server.document
        server.headers = {"Waypost-Signature": "sha256=" + hmac.new(b"secret", signed, hashlib.sha256).hexdigest()}

    server.offer(1, {"sampling.rule": "both"}, device="van-8")
    sign()
    device.start()
    ok("a signed document of another device is refused", within(130, lambda: "another device" in device.remote().get("refused", "")), device.remote())
    server.offer(1, {"sampling.rule": "both"})
    sign()
    ok("a signed one is in force, whatever the date", within(130, lambda: device.remote().get("in_force") == 1), device.remote())
    device.stop()


def fences(folder):
    """Lists of geofences as long as they may be, and longer"""
    server, drive = Server(), Drive()
    source = f'[[geofences.source]]\nname = "venue"\nprofile = "geojson"\nurl = "{server.url}/fences"\nevery = "1m"'
    device = Device(folder, server.url, drive.source, server.table + "\n" + source)

    def listed(count, size):
        places = [
            {"type": "Feature", "properties": {"id": f"f{n}", "radius": 50},
             "geometry": {"type": "Point", "coordinates": [8 + n % 100 / 1000, 46 + n / 100000]}} for n in range(count)]
        body = json.dumps({"type": "FeatureCollection", "features": places}).encode()
        return body + b" " * (size - len(body))

    server.fences = listed(10_000, 4 << 20)
    device.start()
    within(30, lambda: server.rows)
    rss = device.rss()
    count = lambda: [each.get("fences") for each in device.places()]
    ok("4 MiB with 10,000 geofences are taken", within(90, lambda: count() == [10_000]), (device.places(), device.said()))
    print(f"      {device.rss() - rss} KiB more")
    for what, body in (("10,001 geofences", listed(10_001, 0)), ("4 MiB and a byte", listed(1, (4 << 20) + 1))):
        server.fences = body
        before = len(server.rows)
        device.process.send_signal(signal.SIGHUP)
        said = within(20, lambda: [each for each in device.places() if each.get("problem")])
        ok(f"{what} change nothing, and are told of", said and count() == [10_000], device.said())
        ok("locations go on", within(10, lambda: len(server.rows) > before + 3), device.said())
    device.stop()


scenarios = {each.__name__: each for each in (locate, flood, kept, dies, interval, wrong, clock, fences)}
for name in sys.argv[1:] or scenarios:
    if name not in scenarios:
        sys.exit(f"remote: there is no {name}; there are {', '.join(scenarios)}")
    print(f"# {scenarios[name].__doc__}", flush=True)
    before = set(os.popen(f"pgrep -P {os.getpid()}").read().split())
    with tempfile.TemporaryDirectory(prefix="waypost-remote-") as folder:
        try:
            scenarios[name](pathlib.Path(folder))
        finally:
            for child in set(os.popen(f"pgrep -P {os.getpid()}").read().split()) - before:
                try:
                    os.kill(int(child), signal.SIGKILL)
                except ProcessLookupError:
                    pass
sys.exit(1 if failures else 0)
