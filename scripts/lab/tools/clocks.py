"""A wall clock that lies, under a daemon with a live receiver that does not."""

import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from proof.daemon import Shim
from proof.drive import checksummed

PATIENCE_S = 60
TEN_YEARS_S = 3653 * 86_400
ROLLOVER = datetime.timedelta(weeks=1024)
# Each phase of the drive, in fixes a second of the receiver apart.
PHASE = 30
PACE_S = 0.03
# Of the loop, for each datagram: one for the bytes, one for the end of the epoch, one for the commit now and then.
WAKEUPS_MAX = 3


class Daemon:
    def __init__(self, program, folder, shim):
        self.socket, self.folder, self.program = folder / "control.sock", folder, program
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (folder / "waypost.toml").write_text(
            f'[device]\nid = "lab"\n[source]\nkind = "udp"\nport = {self.port}\nstale_after = "3s"\n'
            f'[outbox]\npath = "{folder}/outbox.db"\ncommit_window = "1s"\n[sampling]\nrule = "either"\n'
            f'[control]\nsocket = "{self.socket}"\n')
        self.log = open(folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [program, "run", "--config", folder / "waypost.toml"], stderr=self.log, env=os.environ | shim.environment)
        self.wait("it starts with the clock at 1970", lambda status: status)

    def status(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE_S)
        try:
            with client:
                client.connect(str(self.socket))
                client.sendall(b'{"id":1,"do":"status"}\n')
                return json.loads(client.makefile().readline())
        except (FileNotFoundError, ConnectionError):
            return {}

    def wait(self, what, wanted):
        began = time.monotonic()
        while not wanted(status := self.status()):
            if self.process.poll() is not None or time.monotonic() - began > PATIENCE_S:
                fail(f"{what}: {status}\n{(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.02)
        print(f"ok    {what} ({time.monotonic() - began:.1f} s)")
        return status

    def send(self, text):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(text, ("127.0.0.1", self.port))

    def rows(self):
        out = subprocess.run(
            [self.program, "queue", "list", "--path", self.folder / "outbox.db", "--count", "1000"], check=True,
            capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]


def fail(what):
    sys.exit(f"FAIL  {what}")


class Receiver:
    """Drives north at 15 m/s, over a midnight with a leap second."""

    def __init__(self, daemon):
        self.daemon = daemon
        tomorrow = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=1)
        self.midnight = datetime.datetime.combine(tomorrow, datetime.time(), datetime.timezone.utc)
        self.now = self.midnight - datetime.timedelta(seconds=PHASE * 5 // 2)
        self.metres = 0
        self.true_ms = []

    def send(self, clock, date):
        minutes = 30 + self.metres / 1852
        place = f"52{minutes:07.4f},N,01324.0000,E"
        self.daemon.send(
            checksummed(f"GPRMC,{clock},A,{place},29.2,0.0,{date:%d%m%y},,,A")
            + checksummed(f"GPGGA,{clock},{place},1,09,0.9,34.0,M,44.0,M,,"))
        time.sleep(PACE_S)

    def drive(self, early=datetime.timedelta()):
        for _ in range(PHASE):
            self.now += datetime.timedelta(seconds=1)
            self.metres += 15
            if self.now == self.midnight:
                self.send("235960.00", self.now - datetime.timedelta(days=1) - early)
            self.true_ms.append(round(self.now.timestamp() * 1000))
            self.send(f"{self.now:%H%M%S}.00", self.now - early)


def run(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shim = Shim(folder, folder)
        shim.step_clock(-int(time.time()))
        daemon = Daemon(program, folder, shim)
        receiver = Receiver(daemon)
        phases = [("in 1970", -int(time.time()), datetime.timedelta()), ("once it is set", 0, datetime.timedelta()),
                  ("ten years on, over the leap second", TEN_YEARS_S, datetime.timedelta()),
                  ("ten years back", -TEN_YEARS_S, datetime.timedelta()), ("with dates 1024 weeks early", 0, ROLLOVER)]
        for words, step, early in phases:
            shim.step_clock(step)
            before = daemon.status()["wakeups"]
            sent = len(receiver.true_ms)
            receiver.drive(early)
            status = daemon.wait(
                f"it reads on {words}", lambda status: status["source"]["fixes"] >= len(receiver.true_ms))
            wakeups = status["wakeups"] - before
            if wakeups > WAKEUPS_MAX * (len(receiver.true_ms) - sent) + 300:
                fail(f"{wakeups} wake-ups {words}")
        moving = status["motion"]["state"]
        began, before = time.monotonic(), daemon.status()["wakeups"]
        # Ten more years each way, again and again, while nothing comes: what is due is due by the other clock.
        for turn in range(20):
            shim.step_clock(TEN_YEARS_S if turn % 2 else -TEN_YEARS_S)
            time.sleep(0.1)
        daemon.wait("silence is seen by the boot clock", lambda status: status["source"]["state"] == "silent")
        waited, wakeups = time.monotonic() - began, daemon.status()["wakeups"] - before
        print(f"      {wakeups} wake-ups in {waited:.1f} s, most of them for our questions; {moving}")
        if waited > 20 or wakeups > 60 * waited:
            fail("a timer sticks or bursts")
        daemon.process.terminate()
        if daemon.process.wait(timeout=PATIENCE_S) != 0:
            fail("its end")
        times = [
            round(datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp() * 1000)
            for row in daemon.rows()]
        wrong = sorted(set(times) - set(receiver.true_ms))
        kept = [sum(1 for at in set(times) if low < at <= low + PHASE * 1000)
                for low in (receiver.true_ms[0] - 1000 + PHASE * 1000 * phase for phase in range(len(phases)))]
        # The first holds the start, which at this pace lasts for as many fixes as the machine lets by.
        if wrong or times != sorted(times) or kept[0] < 1 or min(kept[1:]) < 5:
            fail(f"times that were never sent: {wrong[:5]}; in order: {times == sorted(times)}; kept of each phase: {kept}")
        print(f"ok    {len(times)} records, every time as the receiver sent it; of each phase {kept}")


run(sys.argv[1])
