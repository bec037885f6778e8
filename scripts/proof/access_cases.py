"""What others may do to the daemon, case by case: by its control socket, beside its queue, and in what they send."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from . import drive
from .daemon import Feeder
from .delivery_cases import case
from .server import Answer
from .situation import Missed, line, reply

NOBODY = 65_534
EVIL = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\u202e\x08\x7f"
# All that steers a terminal: control characters but tab and line feed, and what turns the direction of writing.
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@case("10a-flood-of-reloads", seconds=25, is_short=True)
def flood_of_reloads(it):
    """One client with 65 kB of reload lines, and three with as many of garbage and of flush: the loop has time for others."""
    it.server()
    it.feed(rate=10)
    it.start()
    for flood in (b'{"do":"reload"}\n' * 4096, b'{"do":"status"}\n' * 4096, b"garbage\n" * 8192, b'{"do":"flush"}\n' * 4096):
        client = it.connect()
        client.setblocking(False)
        left, deadline = memoryview(flood), time.monotonic() + 5
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                left = left[client.send(left):] if left else left
            with contextlib.suppress(OSError):
                client.recv(1 << 16)
            it.wait(0.001)
        client.close()
    it.finish()
    it.judge()


@case("10b-status-not-read", seconds=15, is_short=True)
def status_not_read(it):
    """15 clients that ask for status all the time and read nothing: memory stays as it is."""
    it.server()
    it.feed(rate=10)
    it.start()
    it.wait(2)
    before = it.memory("VmRSS")
    clients = [it.connect() for _ in range(15)]
    for client in clients:
        client.setblocking(False)
    peak, deadline = before, time.monotonic() + 8
    while time.monotonic() < deadline:
        peak = max(peak, it.memory("VmRSS"))
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(b'{"do":"status"}\n' * 200)
        it.wait(0.02)
    grown = peak - before
    it.note(grown_mib=round(grown, 1))
    it.require(grown < 8, f"{grown:.1f} MiB more than before")
    for client in clients:
        client.close()
    it.finish()
    it.judge()


@case("10c-postponed-answers", seconds=20, is_short=True)
def postponed_answers(it):
    """An answer that waits for a slow server comes in spite of a half-close, and of a second line that is served after it."""
    server = it.server()
    feeder = it.feed(rate=5)
    it.start([("main", server.url, "")])
    it.until("an upload", 20, lambda: server.requests)
    for what, delay in (("half-close", 4), ("second line", 8)):
        server.script = lambda request, delay=delay: Answer(delay=delay)
        feeder.paused.clear()
        it.wait(1.5)
        # From here on nothing comes that the answer would wait for as well.
        feeder.paused.set()
        it.wait(0.5)
        client = it.connect(timeout=40)
        client.sendall(line({"id": 1, "do": "flush"}))
        if what == "half-close":
            client.shutdown(socket.SHUT_WR)
        else:
            it.wait(1)
            client.sendall(line({"id": 2, "do": "status"}))
        began = time.monotonic()
        try:
            replies = [reply(client)["id"]] + ([reply(client)["id"]] if what == "second line" else [])
            it.require(replies == [1, 2][:len(replies)], f"{what}: replies {replies}")
            it.note(**{f"{what.replace(' ', '_')}_s": round(time.monotonic() - began, 1)})
            it.require(time.monotonic() - began > delay - 2, f"{what}: the answer was not postponed")
        except (OSError, Missed) as problem:
            it.require(False, f"{what}: after {time.monotonic() - began:.1f} s: {problem}")
        client.close()
    it.finish()
    it.judge()


@case("11-pace-toggled", seconds=30, is_short=True)
def pace_toggled(it):
    """pace, odometer and panic by turns for 8 s each as fast as they are answered: records, lines and dropped events stay few."""
    it.server()
    it.feed(rate=1)
    it.start(outbox='commit_window = "1s"\nmax_bytes = "1MiB"')
    it.wait(3)
    client = it.connect()
    floods = {"pace": lambda n: {"do": "pace", "moving": n % 2 == 0}, "odometer": lambda n: {"do": "odometer", "metres": n},
              "panic": lambda n: {"do": "flush", "panic": True, "commit": True}}
    for name, request in floods.items():
        kept, lines, asked, busy = it.status()["motion"]["kept"], len(it.log_lines()), 0, 0
        deadline = time.monotonic() + 8
        while time.monotonic() < deadline:
            client.sendall(line(request(asked)))
            busy += "error" in reply(client)
            asked += 1
        status = it.status()
        kept, lines = status["motion"]["kept"] - kept, len(it.log_lines()) - lines
        it.note(**{name: f"{asked} asked, {busy} refused, {kept} records, {lines} lines"})
        # A change of motion is up to four records; 8 are of the receiver.
        it.require(kept <= 60, f"{name}: {kept} records by {asked} requests")
        it.require(lines <= 60, f"{name}: {lines} lines of log by {asked} requests")
    it.require(status["queue"]["events_dropped"] == 0, f"{status['queue']['events_dropped']} events dropped")
    client.close()
    it.finish()
    # Records by request have the time of the fix before them.
    it.judge(but=("never fed", "lost", "lost beyond the window", "holes", "inversions of time"))


def victim_of(folder, name):
    path = folder / name
    path.write_bytes(b"root's own\n" * 100)
    path.chmod(0o600)
    return path


@case("12-links-beside-the-queue", seconds=30, needs_root=True, is_short=True)
def links_beside_the_queue(it):
    """The service's user puts links in the place of the files of its queue, and root gives orders: nothing of root's changes."""
    it.folder.chmod(0o755)
    server = it.server(script=lambda request: Answer(500))
    it.feed(rate=20)
    it.start()
    it.until("rows wait", 20, lambda: server.requests)
    it.feeder.stop()
    it.end()
    for file in (it.queue, *it.queue.iterdir()):
        os.chown(file, NOBODY, NOBODY)
    kept = it.folder / "kept"
    shutil.copytree(it.queue, kept)
    commands = (["queue"], ["queue", "verify"], ["quarantine", "list"], ["quarantine", "retry", "--all"], ["endpoint", "list"],
                ["endpoint", "resume", "main"], ["endpoint", "drop", "main"], ["run"])
    for suffix in ("-lock", "", "-wal", "-shm", "-journal"):
        for dangling in (False, True):
            shutil.rmtree(it.queue)
            shutil.copytree(kept, it.queue)
            for file in (it.queue, *it.queue.iterdir()):
                os.chown(file, NOBODY, NOBODY)
            victim = victim_of(it.folder, "victim")
            link = it.queue / f"outbox.db{suffix}"
            link.unlink(missing_ok=True)
            link.symlink_to(it.folder / "made-by-root" if dangling else victim)
            os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
            before = (victim.read_bytes(), victim.stat().st_mode, victim.stat().st_uid)
            for command in commands:
                status = ask(it, command)
                what = f"{' '.join(command)} with a link at outbox.db{suffix}"
                it.require(status is None or status >= 0, f"{what}: ended by signal {status}")
                it.require(before == (victim.read_bytes(), victim.stat().st_mode, victim.stat().st_uid), f"{what}: the file of root is changed")
                it.require(not (it.folder / "made-by-root").exists(), f"{what}: made a file of root's")
                if it.missed:
                    return


def ask(it, command):
    """- Returns: the exit status, nil for a daemon that had to be ended."""
    process = subprocess.Popen([it.daemon.waypost, *command, "--config", it.daemon.config],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(timeout=1.5 if command == ["run"] else 20)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        return None


class EvilFeeder(Feeder):
    """Between its fixes there are sentences and lines of gpsd that steer a terminal."""

    def epoch(self, number):
        text = f"GPTXT,01,01,02,{EVIL}"
        lines = [drive.checksummed(text), b"$" + EVIL.encode() + b"\r\n", EVIL.encode("latin-1", "ignore") + b"\r\n",
                 json.dumps({"class": "VERSION", "release": EVIL, "rev": EVIL, "proto_major": 3, "proto_minor": 14}).encode() + b"\r\n",
                 json.dumps({"class": "ERROR", "message": EVIL}, ensure_ascii=False).encode() + b"\r\n"]
        return super().epoch(number) + lines[number % len(lines)]


def harmless(it, what, text):
    found = STEERING.search(text)
    it.require(not found, f"{what} holds U+{ord(found[0]):04X}: {text[max(0, found.start() - 40):found.start() + 40]!r}" if found else "")


def look(it):
    """What people see, all of it without anything that steers a terminal."""
    seen = ""
    for command in (["status"], ["status", "--json"], ["endpoint", "list"], ["quarantine", "list"], ["quarantine", "export"], ["queue"]):
        out = subprocess.run([it.daemon.waypost, *command, "--config", it.daemon.config], capture_output=True, timeout=30)
        text = (out.stdout + out.stderr).decode("utf-8", "backslashreplace")
        harmless(it, " ".join(command), text)
        seen += text
    harmless(it, "the log", it.daemon.log.read_text(errors="replace"))
    return seen + it.daemon.log.read_text(errors="replace")


@case("13a-texts-of-a-server", seconds=10, is_short=True)
def texts_of_a_server(it):
    """Bodies, headers and reason phrases that steer a terminal, and a receiver behind TCP whose lines do."""
    poison = {3}

    def script(request):
        if any(drive.number_of(time_ms) in poison for _, time_ms in request.rows):
            return Answer(400, [("Location", EVIL.replace("\n", "").encode("utf-8").decode("latin-1"))], EVIL.encode())
        return Answer()
    it.server(script=script)
    it.server("moved", script=lambda request: Answer(302, [("Location", "http://" + EVIL.encode().decode("latin-1"))], EVIL.encode()))
    forbidden = it.server("forbidden", script=lambda request: Answer(403, [], EVIL.encode() + b"\xff\xfe\x1b[2J"))
    it.feed(rate=10, kind=EvilFeeder)
    it.start()
    it.until("a row is in quarantine", 20, lambda: it.status("main")["quarantine_depth"] == 1)
    it.until("an endpoint pauses", 20, lambda: it.status("forbidden")["state"] == "paused")
    it.wait(3)
    seen = look(it)
    it.require("owned" in seen, "the words of the servers are not shown at all")
    it.require(len(forbidden.requests) >= 1, "no request")
    it.finish(drained=["main"])
    it.judge(optional=("main", "moved", "forbidden"), but=("refused, not quarantined", "requests for poison beyond the limit"))


class EvilGPSD:
    """Speaks as gpsd does, with names and messages that steer a terminal."""

    def __init__(self, stack):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        stack.callback(self.listener.close)
        threading.Thread(target=self.serving, daemon=True).start()

    def serving(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.speak, args=(client,), daemon=True).start()

    def speak(self, client):
        device = {"class": "DEVICE", "path": "/dev/" + EVIL, "driver": EVIL, "subtype": EVIL, "activated": "2026-03-02T00:00:00.000Z"}
        reports = [{"class": "VERSION", "release": EVIL, "rev": EVIL, "proto_major": 3, "proto_minor": 14},
                   {"class": "DEVICES", "devices": [device]}, device, {"class": "ERROR", "message": EVIL},
                   {"class": "WATCH", "enable": True, "json": True}]
        with client, contextlib.suppress(OSError):
            for number in range(10_000):
                if number:
                    reports = [{"class": "TPV", "device": device["path"], "mode": 3, "lat": 47 + number / 1e4, "lon": 8, "speed": 11,
                                "time": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(drive.START_S + number))},
                               {"class": "ERROR", "message": EVIL}]
                for report in reports:
                    client.sendall(json.dumps(report, ensure_ascii=number % 2 == 0).encode() + b"\r\n")
                time.sleep(1)


@case("13b-texts-of-gpsd", seconds=10, is_short=True)
def texts_of_gpsd(it):
    """A gpsd whose devices, drivers and messages steer a terminal."""
    it.server()
    it.feeder = EvilGPSD(it.stack)
    it.start(is_gpsd=True)
    it.wait(8)
    look(it)
    it.require(it.status()["source"]["state"] != "opening", f"gpsd was not heard: {it.status()['source']}")
    it.end()
    it.judge(but=("never fed",))
