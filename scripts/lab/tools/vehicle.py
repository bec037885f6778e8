"""A vehicle with the unmodified daemon, a server, and the links between them, in network namespaces of their own.

It runs in a network and a mount namespace that nobody else has: `python3 -m lab.tools.networks` begins them.
"""

import contextlib
import ctypes
import datetime
import gzip
import http.server
import json
import pathlib
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

from lab.tools.wire import Wire, without_offload
from proof import drive

SERVICE, RESOLVER, FIX_PORT = "10.9.0.1", "10.9.0.53", 4000
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def run(*command, **more):
    subprocess.run(command, check=True, **more)


@contextlib.contextmanager
def inside(name):
    """Sockets that this thread opens meanwhile are those of another network namespace."""
    with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{name}") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {name}")
        try:
            yield
        finally:
            libc.setns(here.fileno(), CLONE_NEWNET)


class Ledger:
    """What the server has accepted: when, from which address, which fixes and under which id."""

    def __init__(self):
        self.entries, self.changed = [], threading.Condition()
        self.requests = []
        self.doubled, self.disordered, self.stored, self.newest = 0, 0, {}, -1

    def accepted(self, address, numbers, batch):
        with self.changed:
            for number in numbers:
                if number in self.stored:
                    self.doubled += self.stored[number] != batch
                    continue
                self.stored[number] = batch
                self.disordered += number < self.newest
                self.newest = max(self.newest, number)
            self.entries.append((time.monotonic(), address, len(numbers)))
            self.changed.notify_all()

    def first(self, since, limit):
        """Seconds from an instant to the first acceptance after it; None when there is none in time."""
        with self.changed:
            while True:
                after = [at for at, _, count in self.entries if at >= since and count]
                if after:
                    return after[0] - since
                rest = since + limit - time.monotonic()
                if rest <= 0:
                    return None
                self.changed.wait(rest)

    def rows(self, since=0.0, until=float("inf")):
        with self.changed:
            return sum(count for at, _, count in self.entries if since <= at < until)


class Server(http.server.ThreadingHTTPServer):
    """HTTP and HTTPS. `answer` gives status, headers and seconds to wait for a client's address; None = no answer at all."""

    daemon_threads = True

    def __init__(self, ledger, port, certificate=None):
        super().__init__((SERVICE, port), Handler)
        self.ledger = ledger
        self.answer = lambda client: (200, {}, 0)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # In the thread of the connection: a client that hangs holds up nobody else.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_OPTIONS(self):
        self.do_POST()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.ledger.requests.append(time.monotonic())
        answer = self.server.answer(self.client_address[0])
        if answer is None:
            time.sleep(600)
            return
        status, headers, wait = answer
        time.sleep(wait)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if 200 <= status < 300 and body:
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            self.server.ledger.accepted(self.client_address[0], *numbers_of(json.loads(body)))

    def log_message(self, *_):
        pass


def numbers_of(body):
    """The numbers of the fixes in a body of the profile waypost or overland, and its id."""
    records = body["locations"]
    if "batch_id" in body:
        return [drive.number_of(record["time_ms"]) for record in records if record.get("time_ms")], body["batch_id"]
    times = [datetime.datetime.fromisoformat(record["properties"]["timestamp"]) for record in records]
    return [drive.number_of(int(time.timestamp() * 1000)) for time in times], None


class Resolver(threading.Thread):
    """Knows one address for every name, and none of IPv6. `mode`: answers, drops-aaaa, silent."""

    def __init__(self):
        super().__init__(daemon=True)
        self.mode = "answers"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((RESOLVER, 53))
        self.start()

    def run(self):
        while True:
            query, client = self.socket.recvfrom(512)
            end = 12
            while query[end]:
                end += query[end] + 1
            kind = struct.unpack_from("!H", query, end + 1)[0]
            if self.mode == "silent" or self.mode == "drops-aaaa" and kind == 28:
                continue
            count = int(kind == 1)
            reply = query[:2] + struct.pack("!HHHHH", 0x8180, 1, count, 0, 0) + query[12:end + 5]
            if count:
                reply += struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(SERVICE)
            self.socket.sendto(reply, client)


class Subscriber(threading.Thread):
    """Enters what a broker passes on."""

    def __init__(self, ledger):
        super().__init__(daemon=True)
        self.ledger = ledger
        deadline = time.monotonic() + 10
        while True:
            try:
                self.socket = socket.create_connection((SERVICE, 1883), timeout=2)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.socket.settimeout(None)
        self.stream = self.socket.makefile("rb")
        name, topic = b"reader", b"fleet/+/location"
        connect = b"\0\4MQTT\4\2\0\0" + struct.pack("!H", len(name)) + name
        subscribe = b"\0\1" + struct.pack("!H", len(topic)) + topic + b"\0"
        self.socket.sendall(bytes([0x10, len(connect)]) + connect)
        self.packet()
        self.socket.sendall(bytes([0x82, len(subscribe)]) + subscribe)
        self.packet()
        self.start()

    def packet(self):
        kind, length, shift = self.stream.read(1)[0] >> 4, 0, 0
        while True:
            byte = self.stream.read(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return kind, self.stream.read(length)

    def run(self):
        while True:
            kind, body = self.packet()
            if kind == 3:
                record = json.loads(body[2 + struct.unpack_from("!H", body)[0]:])
                if record.get("time_ms"):
                    self.ledger.accepted("", [drive.number_of(record["time_ms"])], record["id"])


class Lab:
    """- scheme: http, https or mqtt.
    - keys: of the endpoint."""

    def __init__(self, folder, program, scheme="http", keys="", links=("wlan0", "wwan0")):
        self.folder, self.program, self.links = pathlib.Path(folder), program, links
        self.processes = []
        self.wires = {}
        for name in ("vehicle", "server"):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for address in (SERVICE, RESOLVER):
            run("ip", "-n", "server", "addr", "add", f"{address}/32", "dev", "lo")
        for number, link in enumerate(links, 1):
            for end, name in (("v", "vehicle"), ("s", "server")):
                run("ip", "link", "add", f"{end}{number}", "type", "veth", "peer", "name", "there")
                for device in (f"{end}{number}", "there"):
                    without_offload(device)
                run("ip", "link", "set", "there", "netns", name, "name", link)
                run("ip", "link", "set", f"{end}{number}", "up")
            run("ip", "-n", "server", "addr", "add", f"10.{number}.0.1/16", "dev", link)
            run("ip", "-n", "server", "link", "set", link, "up")
            self.wires[link] = Wire(f"v{number}", f"s{number}")
            self.wires[link].is_up = False
        self.ledger = Ledger()
        self.certificate = self.folder / "server.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=server.lab", "-addext", "subjectAltName=DNS:server.lab", "-keyout", self.folder / "key.pem",
            "-out", self.folder / "ca.pem", stderr=subprocess.DEVNULL)
        self.certificate.write_text((self.folder / "ca.pem").read_text() + (self.folder / "key.pem").read_text())
        with inside("server"):
            self.resolver = Resolver()
            self.http = Server(self.ledger, 80)
            self.https = Server(self.ledger, 443, self.certificate)
        if scheme == "mqtt":
            (self.folder / "mosquitto.conf").write_text(f"listener 1883 {SERVICE}\nallow_anonymous true\n")
            self.begin("server", "mosquitto", "-c", self.folder / "mosquitto.conf")
            with inside("server"):
                self.subscriber = Subscriber(self.ledger)
        with inside("vehicle"):
            self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.fixes = 0
        self.config = self.folder / "waypost.toml"
        trust = f'tls = {{ ca = "{self.folder}/ca.pem" }}\n' if scheme == "https" else ""
        profile = "" if "profile" in keys else f'profile = "waypost{"-mqtt" if scheme == "mqtt" else ""}"\n'
        self.config.write_text(
            f'[device]\nid = "van"\n[source]\nkind = "udp"\nport = {FIX_PORT}\nrollover = "off"\n'
            f'[outbox]\npath = "{folder}/outbox.db"\ncommit_window = "1s"\n[control]\nsocket = "{folder}/control.sock"\n'
            '[tracking]\nstart_moving = true\ndisable_stop_detection = true\n[sampling]\npreset = "active"\n'
            f'[[endpoint]]\nbase_url = "{scheme}://server.lab"\n{profile}{trust}{keys}\n')
        self.daemon = None

    def begin(self, namespace, *command):
        with open(self.folder / f"{pathlib.Path(command[0]).name}.log", "ab") as output:
            self.processes.append(subprocess.Popen(
                ["ip", "netns", "exec", namespace, *command], stdout=output, stderr=output))
        return self.processes[-1]

    def start(self):
        self.daemon = self.begin("vehicle", self.program, "run", "--config", self.config)
        deadline = time.monotonic() + 30
        while not (self.folder / "control.sock").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        threading.Thread(target=self.driving, daemon=True).start()

    def driving(self):
        """A fix each second."""
        while True:
            self.drive(1)
            time.sleep(1)

    def drive(self, count):
        for _ in range(count):
            self.receiver.sendto(drive.epoch(self.fixes), ("127.0.0.1", FIX_PORT))
            self.fixes += 1
            if count > 1:
                time.sleep(0.004)

    def connect(self, link, host=2):
        """Link, address and route.

        Returns when that was.
        """
        number = self.links.index(link) + 1
        address = f"10.{number}.0.{host}"
        self.wires[link].source = address
        self.wires[link].is_up = True
        self.ip(f"link set {link} up", f"addr flush dev {link}", f"addr add {address}/16 dev {link}",
                f"route replace default via 10.{number}.0.1 dev {link}")
        return time.monotonic()

    def disconnect(self, link):
        """As a manager of networks does: the address goes, and with it the routes."""
        self.wires[link].is_up = False
        self.ip(f"addr flush dev {link}", f"link set {link} down")

    def ip(self, *commands):
        run("ip", "-n", "vehicle", "-batch", "-", input="\n".join(commands).encode())

    def status(self):
        out = subprocess.run(
            [self.program, "status", "--json", "--config", self.config], capture_output=True, text=True, check=False)
        with contextlib.suppress(ValueError):
            return json.loads(out.stdout)
        return {}

    def doctor(self):
        out = subprocess.run(
            ["ip", "netns", "exec", "vehicle", self.program, "doctor", "--json", "--config", self.config],
            capture_output=True, text=True, check=False)
        report = json.loads(out.stdout)
        check = next(check for check in report["checks"] if check["number"] == 20)
        return report["endpoints"][0].get("failed", "-"), check["found"]

    def sent(self):
        """Bytes that the vehicle has put on its links, and those that came."""
        return tuple(sum(wire.bytes[direction] for wire in self.wires.values()) for direction in (0, 1))

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()


def wrapped(folder):
    """The beginning of a command that runs in namespaces that end with it."""
    script = (
        "mount --make-rprivate / && mkdir -p /run/netns && mount -t tmpfs none /run/netns && "
        f"echo nameserver {RESOLVER} >{folder}/resolv.conf && mount --bind {folder}/resolv.conf /etc/resolv.conf && "
        'ip link set lo up && exec "$@"')
    return ["unshare", "-n", "-m", "sh", "-c", script, "sh"]
