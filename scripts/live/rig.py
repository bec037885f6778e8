"""What the measurements and trials with brokers share: a drive of any length, and the unmodified daemon that sends it."""
import contextlib
import json
import pathlib
import signal
import socket
import subprocess
import time

from proof import daemon as proof
from proof import drive

WAYPOST = proof.build_path() / "waypost"


def within(seconds, condition, pause=0.05):
    """What the condition gives as soon as that is true, or at last."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(pause)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def log(path, count):
    """A drive at 1 Hz of which the preset `active` keeps every fix."""
    with open(path, "wb") as file:
        file.writelines(drive.epoch(number) for number in range(count))
    return path


class Daemon:
    """One device with one endpoint."""

    def __init__(self, folder, url, source, endpoint="", device="van-7", profile="waypost-mqtt"):
        self.folder, self.process = pathlib.Path(folder), None
        self.config = self.folder / "waypost.toml"
        self.config.write_text(
            f'[device]\nid = "{device}"\n[source]\n{source}\nrollover = "off"\n[sampling]\npreset = "active"\n'
            f'[outbox]\npath = "{folder}/outbox.db"\n[control]\nsocket = "{folder}/control.sock"\n'
            f'[[endpoint]]\nbase_url = "{url}"\nprofile = "{profile}"\n{endpoint}\n')

    def start(self, *wrapper):
        with open(self.folder / "waypost.log", "ab") as output:
            self.process = subprocess.Popen(
                [*wrapper, WAYPOST, "run", "--config", self.config], stdout=output, stderr=output)
        return self

    def status(self):
        out = subprocess.run(
            [WAYPOST, "status", "--json", "--config", self.config], capture_output=True, text=True, timeout=60, check=False)
        with contextlib.suppress(ValueError):
            return json.loads(out.stdout)
        return {}

    def endpoint(self):
        return (self.status().get("endpoints") or [{}])[0]

    def said(self):
        return (self.folder / "waypost.log").read_text()[-1500:]

    def stop(self, number=signal.SIGTERM):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)
