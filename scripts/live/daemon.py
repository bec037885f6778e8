"""Scenarios of scripts/live/daemon: what the unmodified daemon does with mosquitto."""
import json, os, pathlib, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from rig import WAYPOST as waypost, free_port, listens, within

root = pathlib.Path(__file__).resolve().parent.parent.parent
mosquitto = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
drive = root / "fixtures/nmea/demo-city-drive.nmea"
failures = []


def ok(what, condition, detail=""):
    print(f"{'ok   ' if condition else 'FAIL '} {what}{'' if condition else f': {detail}'}", flush=True)
    if not condition:
        failures.append(what)


class Broker:
    """mosquitto with lines of its configuration; `stop` and `start` keep its port."""

    def __init__(self, folder, lines=""):
        self.folder, self.port = folder, free_port()
        self.lines = lines or "allow_anonymous true\n"
        self.start()

    def start(self):
        (self.folder / "mosquitto.conf").write_text(f"user root\nlistener {self.port} 127.0.0.1\n{self.lines}")
        log = open(self.folder / "mosquitto.log", "ab")
        self.process = subprocess.Popen([mosquitto, "-c", self.folder / "mosquitto.conf"], stdout=log, stderr=log)
        if not within(10, lambda: listens(self.port)):
            sys.exit(f"daemon: mosquitto does not listen: {(self.folder / 'mosquitto.log').read_text()}")

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Subscriber:
    """All messages below a topic, in the order of their arrival."""

    def __init__(self, port, topic="#", client_id="", **credentials):
        self.messages, self.ready = [], threading.Event()
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
        if credentials:
            self.client.username_pw_set(**credentials)
        self.client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self.client.on_subscribe = lambda *_: self.ready.set()
        self.client.on_message = lambda _, __, message: self.messages.append(message)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        if not self.ready.wait(10):
            sys.exit("daemon: the subscriber does not come in")

    def locations(self):
        return [json.loads(m.payload) for m in list(self.messages) if m.topic.endswith("/location")]

    def texts(self, topic):
        return [m.payload.decode() for m in list(self.messages) if m.topic == topic]

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class Relay:
    """Between the daemon and the broker: cuts all connections when it is told to."""

    def __init__(self, target):
        self.target, self.pairs, self.lock = target, [], threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.pairs += [client, server]
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for each in (a, b):
            each.close()

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for each in pairs:
            try:
                # With a reset, so that what was on the way is lost.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Daemon:
    def __init__(self, folder, port, endpoint="", scheme="mqtt", profile="waypost-mqtt", follow=False, variables={}):
        self.folder = folder
        (folder / "drive.nmea").write_bytes(drive.read_bytes())
        (folder / "waypost.toml").write_text(f"""
[device]
id = "van-7"
[source]
kind = "file"
path = "{folder}/drive.nmea"
follow = {str(follow).lower()}
[sampling]
rule = "either"
[outbox]
path = "{folder}/outbox.db"
[control]
socket = "{folder}/control.sock"
[[endpoint]]
base_url = "{scheme}://127.0.0.1:{port}"
profile = "{profile}"
batch_window = "1s"
timeout = "10s"
{endpoint}
""")
        self.environment = os.environ | variables
        self.start()

    def start(self):
        self.log = open(self.folder / "waypost.log", "ab")
        self.process = subprocess.Popen(
            [waypost, "run", "--config", self.folder / "waypost.toml"], stdout=self.log, stderr=self.log, env=self.environment)

    def call(self, *arguments):
        return subprocess.run([waypost, *arguments, "--config", self.folder / "waypost.toml"], capture_output=True, text=True, timeout=60)

    def endpoint(self):
        try:
            return json.loads(self.call("status", "--json").stdout)["endpoints"][0]
        except (ValueError, LookupError):
            return {}

    def ends(self, seconds=90):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def said(self):
        return (self.folder / "waypost.log").read_text()[-600:]


def in_order(seqs):
    """First arrivals, which must ascend."""
    seen = []
    for seq in seqs:
        if not seen or seq > seen[-1]:
            seen.append(seq)
        elif seq not in seen:
            return None
    return seen


ENGINE = 'publish_rate = "engine"'


def whole(folder):
    """a drive arrives whole, once, in order"""
    broker = Broker(folder)
    subscriber = Subscriber(broker.port, "fleet/#")
    daemon = Daemon(folder, broker.port, ENGINE)
    ok("the job ends by itself", daemon.ends() == 0, daemon.said())
    within(5, lambda: len(subscriber.locations()) >= 724)
    found = [each["seq"] for each in subscriber.locations()]
    ok("each location is there once and in order", len(found) > 700 and found == sorted(set(found)), found[:9])
    ok("the device is announced and takes its leave", subscriber.texts("fleet/van-7/status") == ["online", "offline"])
    return len(found)


def cuts(folder):
    """the connection is cut again and again"""
    broker = Broker(folder)
    relay = Relay(broker.port)
    subscriber = Subscriber(broker.port, "fleet/+/location")
    daemon = Daemon(folder, relay.port, "publish_rate = 60\nbatch_size = 40")
    dice = random.Random(1)
    cut = 0
    while daemon.process.poll() is None and cut < 12:
        time.sleep(dice.uniform(0.2, 1.2))
        relay.cut()
        cut += 1
        # As when our own link comes back; the broker stayed.
        daemon.call("flush")
    ok(f"after {cut} cuts the job ends by itself", daemon.ends(400) == 0, daemon.said())
    within(5, lambda: False)
    found = [each["seq"] for each in subscriber.locations()]
    ids = {each["id"] for each in subscriber.locations()}
    first = in_order(found)
    ok("first arrivals are in order", first is not None, found[:50])
    ok("no location is missing", len(ids) > 700 and len(ids) == len(set(found)), len(ids))
    print(f"      {len(found)} messages for {len(ids)} locations")


def secure(folder):
    """TLS, a user, and MQTT over WebSocket"""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem")
    (folder / "users").write_text("van:sesame\n")
    subprocess.run([shutil.which("mosquitto_passwd", path=os.environ["PATH"] + ":/usr/sbin") or "mosquitto_passwd", "-U", folder / "users"], check=True)
    web = free_port()
    tls = f"certfile {folder}/cert.pem\nkeyfile {folder}/key.pem\n"
    plain = free_port()
    broker = Broker(folder, f"allow_anonymous false\npassword_file {folder}/users\n{tls}listener {web} 127.0.0.1\nprotocol websockets\n{tls}listener {plain} 127.0.0.1\n")
    within(10, lambda: listens(plain) and listens(web))
    subscriber = Subscriber(plain, "fleet/+/location", username="van", password="sesame")
    auth = f'tls = {{ ca = "{folder}/cert.pem" }}\nauth = {{ kind = "basic", user = "van", password = "env:BROKER" }}\n{ENGINE}'
    for scheme, port in (("mqtts", broker.port), ("wss", web)):
        del subscriber.messages[:]
        for path in folder.glob("outbox*"):
            path.unlink()
        daemon = Daemon(folder, port, auth, scheme=scheme, variables={"BROKER": "sesame"})
        ok(f"{scheme}: the job ends by itself", daemon.ends() == 0, daemon.said())
        ok(f"{scheme}: all locations arrive", within(5, lambda: len(subscriber.locations()) > 700), len(subscriber.messages))
    for path in folder.glob("outbox*"):
        path.unlink()
    daemon = Daemon(folder, broker.port, auth, scheme="mqtts", variables={"BROKER": "wrong"}, follow=True)
    found = within(30, lambda: (e := daemon.endpoint()).get("state") == "paused" and e)
    ok("a wrong password pauses the endpoint", found and found.get("reason") == "auth", daemon.endpoint())
    ok("and status says so", found and "credential is refused" in (found.get("problem") or ""), found)
    daemon.process.terminate()
    daemon.ends()


def refused(folder):
    """a topic that the broker does not allow, and nobody there"""
    (folder / "acl").write_text("topic readwrite other/#\n")
    broker = Broker(folder, f"allow_anonymous true\nacl_file {folder}/acl\n")
    daemon = Daemon(folder, broker.port, ENGINE, follow=True)
    found = within(30, lambda: (e := daemon.endpoint()).get("state") == "paused" and e)
    ok("a topic that is not allowed pauses the endpoint", bool(found), daemon.endpoint())
    waiting = daemon.endpoint().get("waiting", 0)
    ok("and keeps every location", waiting > 700, waiting)
    (folder / "acl").write_text("topic readwrite #\n")
    broker.stop()
    broker.start()
    daemon.call("endpoint", "resume", "main")
    found = within(40, lambda: "no subscriber" in ((e := daemon.endpoint()).get("problem") or "") and e)
    ok("without a subscriber nothing is settled", bool(found) and found["waiting"] == waiting, daemon.endpoint())
    subscriber = Subscriber(broker.port, "fleet/+/location")
    daemon.call("flush")
    ok("with one everything arrives", within(60, lambda: len({e["id"] for e in subscriber.locations()}) == waiting), len(subscriber.locations()))
    daemon.process.terminate()
    daemon.ends()


def presence(folder):
    """who subscribes sees whether the device is there"""
    broker = Broker(folder)
    subscriber = Subscriber(broker.port, "fleet/+/status")
    # Who stores locations, so that nothing else is wrong.
    Subscriber(broker.port, "fleet/+/location")
    status = lambda: subscriber.texts("fleet/van-7/status")
    daemon = Daemon(folder, broker.port, ENGINE, follow=True)
    ok("it is announced", within(10, lambda: status() == ["online"]), status())
    checks = json.loads(daemon.call("doctor", "--json").stdout)
    reach = next((c for c in checks["checks"] if c["number"] == 20), {})
    ok("doctor reaches the broker, and the daemon keeps its connection", reach.get("state") == "ok" and status() == ["online"], reach)
    daemon.process.kill()
    ok("the broker tells that it is gone after kill -9", within(10, lambda: status() == ["online", "offline"]), status())
    daemon.start()
    ok("it is back", within(10, lambda: status()[-1] == "online"), status())
    late = Subscriber(broker.port, "fleet/+/status")
    ok("who comes later sees it too", within(10, lambda: late.texts("fleet/van-7/status") == ["online"]))
    broker.signal(signal.SIGSTOP)
    time.sleep(1)
    began = time.monotonic()
    answer = daemon.call("status", "--json")
    ok("a broker that hangs does not hang the daemon", answer.returncode in (0, 1) and time.monotonic() - began < 2)
    broker.signal(signal.SIGCONT)
    daemon.process.terminate()
    ok("it takes its leave", daemon.ends() == 0 and within(10, lambda: status()[-1] == "offline"), status())


def home(folder):
    """what Home Assistant reads"""
    broker = Broker(folder)
    daemon = Daemon(folder, broker.port, ENGINE, profile="home-assistant-mqtt", follow=True)
    within(20, lambda: daemon.endpoint().get("waiting") == 0)
    # All of it is retained: Home Assistant may start later.
    subscriber = Subscriber(broker.port, "#")
    topics = {f"homeassistant/{each}/config" for each in (
        "device_tracker/van-7/location", "sensor/van-7/accuracy", "sensor/van-7/battery", "sensor/van-7/odometer", "sensor/van-7/satellites",
        "sensor/van-7/speed", "sensor/van-7/state", "binary_sensor/van-7/moving", "binary_sensor/van-7/problem")}
    wanted = topics | {"waypost/van-7/availability", "waypost/van-7/location"}
    # What is wrong comes a minute after the start at the earliest.
    ok("everything is retained", within(10, lambda: {m.topic for m in subscriber.messages} - {"waypost/van-7/status"} == wanted), {m.topic for m in subscriber.messages})
    payloads = {m.topic: m.payload for m in subscriber.messages}
    configs = [json.loads(payloads.get(topic, b"{}")) for topic in sorted(topics)]
    ok("each entity has an id of its own, and the device", len({c.get("unique_id") for c in configs}) == len(topics) and all(c.get("device", {}).get("identifiers") == ["waypost_van-7"] for c in configs))
    place = json.loads(payloads.get("waypost/van-7/location", b"{}"))
    numbers = [place.get(name) for name in ("latitude", "longitude", "gps_accuracy")]
    ok("the place is in numbers, with its accuracy", all(isinstance(n, (int, float)) for n in numbers), place)
    daemon.process.terminate()
    daemon.ends()


scenarios = {each.__name__: each for each in (whole, cuts, secure, refused, presence, home)}
for name in sys.argv[1:] or scenarios:
    if name not in scenarios:
        sys.exit(f"daemon: there is no {name}; there are {', '.join(scenarios)}")
    print(f"# {scenarios[name].__doc__}", flush=True)
    before = {p for p in os.popen("pgrep -P %d" % os.getpid()).read().split()}
    with tempfile.TemporaryDirectory(prefix="waypost-live-") as folder:
        try:
            scenarios[name](pathlib.Path(folder))
        finally:
            for child in os.popen("pgrep -P %d" % os.getpid()).read().split():
                if child not in before:
                    try:
                        os.kill(int(child), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
sys.exit(1 if failures else 0)
