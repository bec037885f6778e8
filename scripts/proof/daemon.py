"""The real daemon, fed and ended from here."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

from . import drive

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def build_path():
    """Where the executables are; $WAYPOST_BIN names those of another build."""
    if "WAYPOST_BIN" in os.environ:
        return pathlib.Path(os.environ["WAYPOST_BIN"])
    out = subprocess.run([ROOT / "scripts/build", "--path"], check=True, capture_output=True, text=True, cwd=ROOT)
    return pathlib.Path(out.stdout.strip())


class Shim:
    """The preloaded library and the word that it obeys."""

    HEALTHY, FULL, EIO_WRITES, EIO_FLUSHES, READ_ONLY, LYING, EIO_READS, EIO_ALL = range(8)

    def __init__(self, folder, disk):
        self.library, self.control = folder / "shim.so", folder / "shim.control"
        subprocess.run(
            ["cc", "-O2", "-Wall", "-Wextra", "-Winit-self", "-Werror", "-shared", "-fPIC", "-o", self.library, pathlib.Path(__file__).parent / "shim.c", "-ldl"], check=True)
        self.control.write_bytes(bytes(64))
        self.disk = disk

    @property
    def environment(self):
        return {"LD_PRELOAD": str(self.library), "WAYPOST_SHIM_CONTROL": str(self.control),
                "WAYPOST_SHIM_DISK": str(self.disk)}

    def put(self, offset, packed):
        with open(self.control, "r+b") as file:
            file.seek(offset)
            file.write(packed)

    def step_clock(self, seconds):
        self.put(0, struct.pack("q", seconds))

    def strike_disk(self, kind, per_mille=1000):
        self.put(8, struct.pack("ii", kind, per_mille))

    def fail_read(self, number):
        """The read with this number from now on fails, once; 0 = none."""
        self.put(24, struct.pack("q", number))

    @property
    def refused(self):
        return struct.unpack_from("q", self.control.read_bytes(), 16)[0]

    @property
    def is_read_due(self):
        """The read that is to fail has not come yet."""
        return struct.unpack_from("q", self.control.read_bytes(), 24)[0] > 0


class Feeder:
    """A receiver behind a TCP server: while a client is connected, `rate` fixes a second, each entered in the ledger."""

    def __init__(self, ledger, count, rate, port=0):
        self.ledger, self.count, self.rate = ledger, count, rate
        self.next = 0
        self.paused, self.stopped = threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", port))
        self.listener.settimeout(0.1)
        self.port = self.listener.getsockname()[1]
        self.server = threading.Thread(target=self.serving, daemon=True)
        self.server.start()

    @property
    def is_done(self):
        return self.next >= self.count

    def stop(self):
        self.stopped.set()
        self.server.join()
        self.listener.close()

    def serving(self):
        while not self.stopped.is_set():
            try:
                connection, _ = self.listener.accept()
            except TimeoutError:
                continue
            try:
                with connection:
                    self.feed(connection)
            except OSError:
                pass

    def feed(self, connection):
        # So little that what the daemon has not read yet is a fraction of a second.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        connection.settimeout(30)
        began, sent = time.monotonic(), 0
        while not self.stopped.is_set():
            due = int((time.monotonic() - began) * self.rate) + 1 - sent
            if due <= 0 or self.paused.is_set() or self.is_done:
                connection.settimeout(0.0)
                try:
                    if not connection.recv(4096):
                        return
                except BlockingIOError:
                    pass
                connection.settimeout(30)
                if self.paused.is_set():
                    began, sent = time.monotonic(), 0
                time.sleep(0.005)
                continue
            for _ in range(min(due, 50, self.count - self.next)):
                number, self.next = self.next, self.next + 1
                connection.sendall(self.epoch(number))
                sent += 1

    def epoch(self, number):
        """The sentences of a fix, of which the ledger knows from here on."""
        self.ledger.fed(number, time.monotonic())
        return drive.epoch(number)


class Daemon:
    """`waypost run`, many times in one folder."""

    def __init__(self, waypost, folder, config, environment=None):
        self.waypost, self.folder, self.config = str(waypost), folder, config
        self.environment = {**os.environ, **(environment or {})}
        self.log = folder / "waypost.log"
        self.process = None
        self.unbidden = []  # exit statuses that were not asked for

    def start(self):
        with open(self.log, "ab") as log:
            log.write(b"---- start ----\n")
            log.flush()
            self.process = subprocess.Popen(
                [self.waypost, "run", "--config", self.config], stdout=log, stderr=log, env=self.environment)

    def check_alive(self):
        if self.process.poll() is not None:
            self.unbidden.append(self.process.returncode)
            return False
        return True

    def kill(self):
        self.check_alive()
        self.process.kill()
        at = time.monotonic()
        self.process.wait()
        return at

    def end(self):
        self.check_alive()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "did not end within 60 s of SIGTERM"

    def status(self):
        """None while the daemon does not answer."""
        out = subprocess.run(
            [self.waypost, "status", "--json", "--config", self.config], capture_output=True, text=True, timeout=30)
        try:
            return json.loads(out.stdout)
        except ValueError:
            return None

    def ask(self, *command):
        return subprocess.run(
            [self.waypost, *command, "--config", self.config], capture_output=True, text=True, timeout=30, check=True).stdout

    def quarantine(self, endpoint):
        """Of each record that an endpoint would not take: time in ms, and whether it is a gap."""
        lines = map(json.loads, self.ask("quarantine", "export").splitlines())
        return [(line["record"]["time_ms"], line["record"].get("event") == "gap") for line in lines if line["endpoint"] == endpoint]

    def drained(self, within, watch=lambda: True):
        """Waits until every endpoint has everything, and returns what waits if it does not."""
        deadline = time.monotonic() + within
        status = None
        while time.monotonic() < deadline and watch() and self.check_alive():
            status = self.status() or status
            if status and not any(endpoint["waiting"] for endpoint in status["endpoints"]):
                return True, status
            time.sleep(0.25)
        return False, status

    def salvaged(self, queue, within):
        """Waits until a damaged queue is completely restored."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self.check_alive():
            if self.status() is not None:
                with contextlib.closing(sqlite3.connect(f"file:{queue}?mode=ro", uri=True)) as database:
                    # Lines of three numbers: parts that are read for the first time.
                    plans = database.execute("SELECT value FROM state WHERE name = 'salvage'").fetchall()
                    if not any(re.fullmatch(rb"\d+ \d+ \d+", line) for plan, in plans for line in plan.split(b"\n")):
                        return True
            time.sleep(0.25)
        return False

    def tail(self, lines=20):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def configuration(folder, feeder_port, endpoints, outbox, device="storm", more=""):
    """Every fix is kept: those of the drive always move."""
    path = folder / "waypost.toml"
    tables = "".join(f'[[endpoint]]\nname = "{name}"\nbase_url = "{url}"\n{keys}\n' for name, url, keys in endpoints)
    path.write_text(
        f'[device]\nid = "{device}"\n[source]\nkind = "tcp"\nhost = "127.0.0.1"\nport = {feeder_port}\nrollover = "off"\n'
        f'[control]\nsocket = "{folder}/control.sock"\n[outbox]\n{outbox}\n'
        '[tracking]\nstart_moving = true\ndisable_stop_detection = true\n[sampling]\npreset = "active"\n'
        f'{more}\n{tables}')
    return path
