"""Scenarios of scripts/live/losses: what the unmodified daemon does when a real mosquitto loses its connections."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from live.rig import WAYPOST, Daemon, free_port, listens, within
from proof.daemon import Feeder

MOSQUITTO = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
CONNECT, CONNACK, PUBLISH, PUBACK, SUBSCRIBE, DISCONNECT = 1, 2, 3, 4, 8, 14
failures = []


def ok(what, condition, detail=""):
    print(f"{'ok   ' if condition else 'FAIL '} {what}{'' if condition else f': {detail}'}", flush=True)
    if not condition:
        failures.append(what)


class Packets:
    """Takes a stream of MQTT apart."""

    def __init__(self):
        self.unread = b""

    def take(self, data):
        """Type, flags and body of each packet that is complete."""
        self.unread += data
        while True:
            length, shift, index = 0, 0, 1
            while True:
                if index >= len(self.unread):
                    return
                length |= (self.unread[index] & 0x7F) << shift
                index, shift = index + 1, shift + 7
                if not self.unread[index - 1] & 0x80:
                    break
            if len(self.unread) < index + length:
                return
            first, body = self.unread[0], self.unread[index:index + length]
            self.unread = self.unread[index + length:]
            yield first >> 4, first & 0x0F, body


def text(body, at):
    length = int.from_bytes(body[at:at + 2], "big")
    return body[at + 2:at + 2 + length], at + 2 + length


def connect(client_id):
    body = b"\0\4MQTT\5\2\0\x3c\0" + len(client_id).to_bytes(2, "big") + client_id.encode()
    return bytes([CONNECT << 4, len(body)]) + body


class Client:
    """Another client, at the broker itself, that comes back `pause` seconds after each loss."""

    def __init__(self, port, client_id, topic=None, pause=1.0):
        self.port, self.client_id, self.topic, self.pause = port, client_id, topic, pause
        self.connections, self.ready, self.stopped = 0, threading.Event(), threading.Event()
        threading.Thread(target=self.running, daemon=True).start()

    def running(self):
        while not self.stopped.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5) as s:
                s.settimeout(0.2)
                s.sendall(connect(self.client_id))
                self.listening(s)
            self.ready.clear()
            self.stopped.wait(self.pause)

    def listening(self, s):
        packets, heard = Packets(), time.monotonic()
        while not self.stopped.is_set():
            if time.monotonic() - heard > 20:
                s.sendall(b"\xc0\0")
                heard = time.monotonic()
            try:
                data = s.recv(65536)
            except TimeoutError:
                continue
            if not data:
                return
            for kind, _, _ in packets.take(data):
                if kind == CONNACK:
                    self.connections += 1
                    if self.topic:
                        topic = self.topic.encode()
                        body = b"\0\1\0" + len(topic).to_bytes(2, "big") + topic + b"\0"
                        s.sendall(bytes([SUBSCRIBE << 4 | 2, len(body)]) + body)
                elif kind == SUBSCRIBE + 1:
                    self.ready.set()

    def stop(self):
        self.stopped.set()


class Relay:
    """Between the daemon and the broker. Keeps what was published and confirmed of each location.

    - latency: seconds by which the broker's words come later, so that something is unanswered when a connection ends.
    """

    def __init__(self, target, latency):
        self.target, self.is_open, self.latency = target, True, latency
        self.client_ids, self.published, self.confirmed, self.reasons, self.retained = [], [], set(), {}, 0
        # Of each connection: most publishes without an answer at a time.
        self.most, self.pairs = [], []
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accepting, daemon=True).start()

    def accepting(self):
        while True:
            client, _ = self.server.accept()
            try:
                if not self.is_open:
                    raise OSError
                broker = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            self.most.append(0)
            self.pairs.append((client, broker))
            state = {"version": 5, "open": {}, "place": len(self.most) - 1}
            for pair in ((client, broker, self.sent), (broker, client, self.answered)):
                threading.Thread(target=self.pumping, args=(*pair, state), daemon=True).start()

    def pumping(self, one, other, look, state):
        packets = Packets()
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if look == self.answered:
                    time.sleep(self.latency)
                found = list(packets.take(data))
                if look == self.sent:
                    for packet in found:
                        look(*packet, state)
                other.sendall(data)
                if look == self.answered:
                    for packet in found:
                        look(*packet, state)
        for each in (one, other):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Lets nobody in, and what is on the way is lost."""
        self.is_open = False
        for each in [each for pair in self.pairs for each in pair]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.pairs = []

    def sent(self, kind, flags, body, state):
        if kind == CONNECT:
            state["version"] = body[6]
            at = 10 + (1 + body[10] if body[6] == 5 else 0)
            self.client_ids.append(text(body, at)[0].decode())
        if kind == PUBLISH and flags & 6:
            topic, at = text(body, 0)
            number, at = int.from_bytes(body[at:at + 2], "big"), at + 2
            payload = body[at + (1 + body[at] if state["version"] == 5 else 0):]
            state["open"][number] = None
            if topic.endswith(b"/location"):
                with contextlib.suppress(ValueError):
                    seq = json.loads(payload).get("seq")
                    state["open"][number] = seq
                    self.published.append((time.monotonic(), seq))
                    self.retained += flags & 1
            self.most[state["place"]] = max(self.most[state["place"]], len(state["open"]))

    def answered(self, kind, _, body, state):
        if kind == PUBACK:
            seq = state["open"].pop(int.from_bytes(body[:2], "big"), None)
            reason = body[2] if len(body) > 2 else 0
            if seq is not None:
                self.reasons[reason] = self.reasons.get(reason, 0) + 1
                if reason == 0:
                    self.confirmed.add(seq)


class Broker:
    """mosquitto on a port that stays."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        (folder / "mosquitto.conf").write_text(f"user root\nlistener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self.start()

    def start(self):
        with open(self.folder / "mosquitto.log", "ab") as log:
            self.process = subprocess.Popen([MOSQUITTO, "-c", self.folder / "mosquitto.conf"], stdout=log, stderr=log)
        if not within(10, lambda: listens(self.port)):
            sys.exit(f"losses: mosquitto does not listen: {(self.folder / 'mosquitto.log').read_text()}")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Unkept:
    """A ledger for which nobody asks."""

    def fed(self, number, at):
        pass


class Scene:
    """A broker, the daemon behind a relay, and a receiver at `rate` fixes a second."""

    def __init__(self, folder, stack, endpoint="", rate=5, profile="waypost-mqtt", latency=0):
        self.broker = Broker(folder)
        stack.callback(self.broker.kill)
        self.relay = Relay(self.broker.port, latency)
        self.feeder = Feeder(Unkept(), 100_000, rate)
        stack.callback(self.feeder.stop)
        source = f'kind = "tcp"\nhost = "127.0.0.1"\nport = {self.feeder.port}'
        endpoint += "\n[tracking]\nstart_moving = true\ndisable_stop_detection = true\n"
        self.daemon = Daemon(folder, f"mqtt://127.0.0.1:{self.relay.port}", source, endpoint, profile=profile)
        self.stack = stack

    def start(self):
        self.daemon.start()
        self.stack.callback(self.daemon.stop, signal.SIGKILL)
        return self

    def client(self, *arguments, **options):
        client = Client(self.broker.port, *arguments, **options)
        self.stack.callback(client.stop)
        return client

    def ask(self, *command):
        return subprocess.run(
            [WAYPOST, *command, "--config", self.daemon.config], capture_output=True, text=True, timeout=60, check=False)

    def judge(self, limit=600):
        """Everything that was recorded arrives, once nothing is wrong any more."""
        self.feeder.paused.set()
        time.sleep(2)

        def is_done():
            self.ask("flush")
            return self.daemon.endpoint().get("waiting") == 0
        within(limit, is_done, pause=11)
        end = self.daemon.endpoint()
        counts = {name: end.get(name) for name in ("state", "reason", "waiting", "accepted", "quarantine_depth", "dropped")}
        last = max((seq for _, seq in self.relay.published), default=0)
        lost = sorted(set(range(1, last + 1)) - self.relay.confirmed)
        ok("the endpoint is active", end.get("state") == "active", counts)
        ok("everything is delivered", end.get("waiting") == 0, counts)
        ok("quarantine 0", not end.get("quarantine_depth") and not end.get("quarantined"), counts)
        ok(f"lost 0 of {last}", last > 0 and not lost and not end.get("dropped"), (len(lost), lost[:5], counts))
        print(f"      {len(self.relay.published)} messages for {last} locations over {len(self.relay.most)} connections; "
              f"most unanswered at a time {self.relay.most[:40]}; answers {self.relay.reasons}", flush=True)


PACE = 'batch_window = "1s"\nbatch_size = 50\ntimeout = "20s"\non_collision = "clear"'


def twin(folder, stack, seconds=240):
    """another client with our client id, which comes back a second after each loss"""
    scene = Scene(folder, stack, PACE, latency=0.2)
    scene.client("reader", topic="fleet/#", pause=0.1).ready.wait(10)
    scene.start()
    within(20, lambda: scene.relay.confirmed)
    rival = scene.client("waypost-van-7", pause=1.0)
    end = time.monotonic() + seconds
    said = set()
    while time.monotonic() < end:
        time.sleep(2)
        problem = scene.daemon.endpoint().get("problem") or ""
        if "client id" in problem:
            said.add(problem.split(";")[0])
    ok("a problem names the possibility", bool(said), scene.daemon.endpoint())
    print(f"      {rival.connections} connections of the other; said: {list(said)[:1]}", flush=True)
    rival.stop()
    time.sleep(1)
    scene.judge()


def killed(folder, stack, times=50):
    """a broker that is killed again and again"""
    scene = Scene(folder, stack, PACE, rate=10, latency=0.2)
    reader = scene.client("reader", topic="fleet/#", pause=0.05)
    reader.ready.wait(10)
    scene.start()
    dice = random.Random(1)
    began = flushed = time.monotonic()
    for _ in range(times):
        count = len(scene.relay.published)

        def goes_out():
            nonlocal flushed
            if time.monotonic() - flushed > 10.1:
                flushed = time.monotonic()
                # Shortens the wait as a flush does, but does not wait for the upload.
                scene.ask("endpoint", "resume", "main")
            return len(scene.relay.published) > count
        within(90, goes_out)
        time.sleep(dice.uniform(0, 0.6))
        scene.relay.cut()
        scene.broker.kill()
        scene.broker.start()
        reader.ready.clear()
        reader.ready.wait(10)
        scene.relay.is_open = True
    print(f"      killed {times} times in {time.monotonic() - began:.0f} s", flush=True)
    scene.judge()


def nobody(folder, stack, seconds=90):
    """a broker to which nobody listens, and then somebody does"""
    scene = Scene(folder, stack, PACE + '\n[profile.retained]\nextends = "waypost-mqtt"\n[profile.retained.mqtt]\nretain = true',
                  rate=1, profile="retained").start()
    within(30, lambda: scene.relay.reasons.get(0x10))
    time.sleep(seconds)
    attempts, rows = len(scene.relay.published), len({seq for _, seq in scene.relay.published})
    problem = scene.daemon.endpoint().get("problem") or ""
    print(f"      {attempts} publishes of {rows} locations in {seconds} s, {scene.relay.retained} retained", flush=True)
    ok("the oldest alone is tried, rarely", attempts - rows <= 2 + seconds / 15, attempts)
    ok("the problem names the key", "no_subscriber" in problem, problem)
    reader = scene.client("reader", topic="fleet/#")
    reader.ready.wait(10)
    scene.judge()


def neighbours(folder, stack, seconds=20):
    """two endpoints with different sessions at one broker"""
    relayed = "{relay}"
    scene = Scene(folder, stack, f'name = "own"\n{PACE}\n[[endpoint]]\nname = "home"\nbase_url = "mqtt://127.0.0.1:{relayed}"\n'
                  f'profile = "home-assistant-mqtt"\nbatch_window = "1s"\ntimeout = "20s"')
    scene.daemon.config.write_text(scene.daemon.config.read_text().replace(relayed, str(scene.relay.port)))
    scene.client("reader", topic="#", pause=0.1).ready.wait(10)
    scene.start()
    time.sleep(seconds)
    ok("each has a connection of its own, once", sorted(scene.relay.client_ids) == ["waypost-van-7", "waypost-van-7-home"],
       scene.relay.client_ids[:9])
    scene.judge(60)


SCENARIOS = {each.__name__: each for each in (neighbours, nobody, twin, killed)}
for argument in sys.argv[1:] or SCENARIOS:
    name, _, number = argument.partition("=")
    if name not in SCENARIOS:
        sys.exit(f"losses: there is no {name}; there are {', '.join(SCENARIOS)}")
    print(f"# {name}: {SCENARIOS[name].__doc__}", flush=True)
    with tempfile.TemporaryDirectory(prefix="waypost-losses-") as made, contextlib.ExitStack() as undo:
        SCENARIOS[name](pathlib.Path(made), undo, *([int(number)] if number else []))
sys.exit(1 if failures else 0)
