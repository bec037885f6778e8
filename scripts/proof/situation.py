"""One situation that the daemon must come through: what it is made of, and what is judged in the end."""

import contextlib
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

from . import card
from .daemon import Daemon, Feeder, Shim, build_path, configuration
from .ledger import LIMITS, Ledger
from .server import Answer, Server

BLOCKED_MOST_MS = 50
MEMORY_MOST_MIB = 32
SMALL_DISK = 6 << 20


class Missed(Exception):
    """What was waited for and did not come."""


class Situation:
    """- stack: what is undone at the end. - control: the socket of the daemon."""

    def __init__(self, folder, stack):
        self.folder, self.stack = folder, stack
        self.queue, self.control = folder / "queue", folder / "control.sock"
        self.ledger = Ledger(commit_window=10)
        self.servers, self.missed, self.notes = [], [], {}
        self.feeder = self.daemon = self.shim = self.pinger = None
        self.loop, self.began = None, time.monotonic()

    # What it is made of

    def on_a_small_disk(self):
        self.queue = card.Card(self.folder, self.stack, SMALL_DISK).mount

    def server(self, name="main", script=None):
        server = Server(self.ledger, name, script)
        self.stack.callback(server.stop)
        self.servers.append(server)
        return server

    def feed(self, rate, count=100_000, kind=Feeder):
        self.feeder = kind(self.ledger, count, rate)
        self.stack.callback(self.feeder.stop)
        return self.feeder

    def start(self, endpoints=None, outbox='commit_window = "1s"', more="", environment=None, is_gpsd=False):
        """- endpoints: name, URL and further keys of each; by default the servers with a window of 1 s."""
        endpoints = endpoints or [(server.name, server.url, 'batch_window = "1s"') for server in self.servers]
        self.queue.mkdir(exist_ok=True)
        self.shim = self.shim or Shim(self.folder, self.queue)
        outbox = f'path = "{self.queue}/outbox.db"\nmin_free = "off"\n{outbox}'
        config = configuration(self.folder, self.feeder.port if self.feeder else 9, endpoints, outbox, "orders", more)
        if is_gpsd:
            config.write_text(config.read_text().replace('"tcp"', '"gpsd"').replace('rollover = "off"\n', ""))
        self.daemon = self.daemon or Daemon(build_path() / "waypost", self.folder, config,
                                            {**self.shim.environment, **(environment or {})})
        self.run()

    def run(self):
        """Starts the daemon; what it was started for is measured from here on."""
        self.ledger.life_began()
        self.daemon.start()
        self.stack.callback(self.kill)
        deadline = time.monotonic() + 60
        while not self.answers():
            if time.monotonic() > deadline or not self.daemon.check_alive():
                raise Missed("the daemon does not start")
            time.sleep(0.05)
        self.pinger = subprocess.Popen(
            [sys.executable, pathlib.Path(__file__).parent / "pinger.py", self.control, str(self.daemon.process.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def answers(self):
        try:
            self.order({"do": "status"}, timeout=5)
            return True
        except OSError:
            return False

    def kill(self):
        for process in (self.daemon.process, self.pinger):
            if process and process.poll() is None:
                process.kill()
                process.wait()

    # What happens to it

    def wait(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.daemon.check_alive():
                raise Missed(f"the daemon ended by itself: {self.daemon.unbidden}")
            time.sleep(min(0.1, max(0.0, deadline - time.monotonic())))

    def until(self, what, within, check):
        """- Returns: what `check` gives once it is true."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if value := check():
                return value
            self.wait(0.1)
        raise Missed(f"after {within} s still not: {what}")

    def connect(self, timeout=60):
        client = connected(self.control, timeout)
        self.stack.callback(client.close)
        return client

    def order(self, request, timeout=60):
        """One request over the control socket, and its reply."""
        with connected(self.control, timeout) as client:
            client.sendall(line(request))
            return reply(client)

    def order_aside(self, request):
        """- Returns: a function that waits for the reply."""
        replies = []

        def ask():
            try:
                replies.append(self.order(request))
            except (OSError, Missed) as problem:
                replies.append({"error": {"message": f"no reply: {problem}"}})
        thread = threading.Thread(target=ask, daemon=True)
        thread.start()

        def joined():
            thread.join(90)
            return replies[0] if replies else {"error": {"message": "no reply within 90 s"}}
        return joined

    def status(self, name=None):
        """Of the whole, or of an endpoint."""
        status = self.order({"do": "status"})
        return status if name is None else next(its for its in status["endpoints"] if its["name"] == name)

    def memory(self, key="VmHWM"):
        """MiB."""
        text = pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        return int(re.search(rf"{key}:\s+(\d+)", text)[1]) / 1024

    def log_lines(self):
        return self.daemon.log.read_text(errors="replace").splitlines()

    # What is judged

    def require(self, is_so, what):
        if not is_so:
            self.missed.append(what)

    def note(self, **notes):
        self.notes.update(notes)

    def counts(self, name="main"):
        return self.ledger.endpoint(name).counts

    def measured(self):
        """Ends the life of the daemon as far as the loop and memory are judged."""
        if not self.pinger:
            return
        out, _ = self.pinger.communicate(b"", timeout=180)
        self.pinger = None
        loop = json.loads(out)
        if not self.loop or loop["blocked_ms"] > self.loop["blocked_ms"]:
            self.loop = loop
        with contextlib.suppress(OSError, TypeError):
            self.note(peak_mib=round(max(self.memory(), self.notes.get("peak_mib", 0)), 1))

    def end(self):
        self.measured()
        ended = self.daemon.end()
        self.require(ended == 0, f"the daemon ended with {ended}")

    def finish(self, within=90, drained=None):
        """Feeds no more, waits until `drained` (all of them by default) have everything, and ends."""
        for server in self.servers:
            server.script = lambda request: Answer()
        if self.feeder:
            self.feeder.stop()
        names = drained or [server.name for server in self.servers]
        # The tracker holds the last fix until the next one or silence.
        self.wait(2)

        self.order_aside({"do": "flush"})

        def is_done():
            status = self.status()
            return all(its["waiting"] == 0 for its in status["endpoints"] if its["name"] in names)
        try:
            self.until(f"{', '.join(names)} drained", within, is_done)
        except Missed as problem:
            self.require(False, f"{problem}: {json.dumps(self.status()['endpoints'])}")
        self.end()

    def judge(self, optional=(), explained=0, but=()):
        """The ledger: nothing lost, doubled, out of order, or before its time.

        - optional: endpoints of which the caller judges what is missing.
        - explained: how many rows may come again since their answer was lost.
        - but: counts that are not judged here.
        """
        report, allowed = self.ledger.report(), {"duplicates explained": explained, "lost": 0}
        limits = {what: limit for what, limit in {**LIMITS, **allowed}.items() if what not in but}
        for name, counts in report.items():
            for what, limit in limits.items():
                if name in optional and what in ("lost", "lost beyond the window", "holes"):
                    continue
                self.require(counts[what] <= limit, f"{name}: {what} {counts[what]}, at most {limit} allowed")
        for server in self.servers:
            self.require(server.most_open <= 1, f"{server.name}: {server.most_open} requests at the same time")
            self.note(**{f"{server.name}_records": report.get(server.name, {}).get("records", 0),
                         f"{server.name}_requests": len(server.requests)})
        if self.missed:
            self.missed += self.ledger.findings[:9] + self.ledger.findings[9:][-1:]


def connected(path, timeout):
    """A client of the control socket; one that finds the line full asks again."""
    deadline = time.monotonic() + timeout
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(timeout)
        try:
            client.connect(str(path))
            return client
        except BlockingIOError:
            client.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        except OSError:
            client.close()
            raise


def line(request):
    return json.dumps(request).encode() + b"\n"


def reply(client):
    """The next line, as JSON. What came with it stays for the next call."""
    received = b""
    while not received.endswith(b"\n"):
        there = client.recv(1 << 16, socket.MSG_PEEK)
        if not there:
            raise Missed(f"the daemon closed the control socket{' in the middle of a reply' if received else ''}")
        received += client.recv(there.find(b"\n") + 1 or len(there))
    return json.loads(received)
