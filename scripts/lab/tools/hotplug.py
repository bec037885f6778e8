"""A USB receiver that exists for one daemon alone: it is plugged and unplugged under changing numbers.

The receiver is a pseudo-terminal behind a node of the mocked /dev; sysfs and the events of udev are umockdev's. The path
that is configured lies outside of that /dev: a node that is missing there makes libumockdev (0.17) end the program.
"""

import argparse
import json
import os
import pathlib
import pty
import re
import socket
import subprocess
import sys
import tempfile
import time
import tty

import gi

from proof.drive import checksummed

gi.require_version("UMockdev", "1.0")
from gi.repository import UMockdev

PATIENCE_S = 60
# Of the first plugs: what is allocated once is allocated then.
WARM_UP = 5
LEAK_MAX_KB = 256


class Receiver:
    """One that sends fixes as fast as it is asked to, each a second after the last."""

    def __init__(self, testbed, link):
        self.testbed = testbed
        self.dev = pathlib.Path(testbed.get_root_dir()) / "dev"
        self.dev.mkdir(exist_ok=True)
        self.link = link
        self.usb = testbed.add_device(
            "usb", "usb1", None, ["idVendor", "1546", "idProduct", "01a8", "serial", "G8-1"], ["DEVTYPE", "usb_device"])
        self.second = 0
        self.ours = None

    def plug(self, number, announces=True):
        self.node = f"ttyACM{number}"
        self.ours, theirs = pty.openpty()
        tty.setraw(theirs)
        os.set_blocking(self.ours, False)
        (self.dev / self.node).symlink_to(os.ttyname(theirs))
        os.close(theirs)
        self.link.symlink_to(self.dev / self.node)
        if announces:
            # Adding it sends the event.
            self.device = self.testbed.add_device(
                "tty", self.node, self.usb, ["dev", f"166:{number}"],
                ["DEVNAME", f"/dev/{self.node}", "ID_VENDOR_ID", "1546", "ID_MODEL_ID", "01a8", "ID_SERIAL_SHORT", "G8-1"])
        else:
            self.device = None

    def send(self):
        self.second += 1
        hours, rest = divmod(self.second, 3600)
        clock = f"{8 + hours:02d}{rest // 60:02d}{rest % 60:02d}.00"
        # A second that goes by in a moment would be a fast car: it stands.
        place = "5230.0000,N,01324.0000,E"
        text = checksummed(f"GPRMC,{clock},A,{place},0.0,,040526,,,A") + checksummed(
            f"GPGGA,{clock},{place},1,09,0.9,34.0,M,44.0,M,,")
        try:
            os.write(self.ours, text)
        except OSError:
            pass  # No process has the line open, or its buffer is full.

    def unplug(self, announces=True):
        self.link.unlink()
        if self.device:
            if announces:
                self.testbed.uevent(self.device, "remove")
            self.testbed.remove_device(self.device)
        (self.dev / self.node).unlink(missing_ok=True)
        os.close(self.ours)


class Daemon:
    def __init__(self, program, source, folder):
        self.socket = folder / "control.sock"
        (folder / "waypost.toml").write_text(
            f'[device]\nid = "lab"\n[source]\nkind = "serial"\n{source}\n'
            f'[outbox]\npath = "{folder}/outbox.db"\n[control]\nsocket = "{self.socket}"\n')
        self.log = open(folder / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "run", "--config", folder / "waypost.toml"], stderr=self.log)

    def source(self):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE_S)
        with client:
            client.connect(str(self.socket))
            client.sendall(b'{"id":1,"do":"status"}\n')
            return json.loads(client.makefile().readline())["source"]

    def wait(self, what, wanted, meanwhile=lambda: None):
        began = time.monotonic()
        while True:
            try:
                source = self.source()
            except (FileNotFoundError, ConnectionError):
                source = {}
            if source and wanted(source):
                return time.monotonic() - began, source
            if self.process.poll() is not None or time.monotonic() - began > PATIENCE_S:
                self.log.seek(0)
                sys.exit(f"FAIL  {what}: {source}\n{self.log.read()[-4000:]}")
            meanwhile()
            time.sleep(0.02)

    def holds(self):
        """Open descriptors, and kilobytes of memory that are its own."""
        proc = pathlib.Path(f"/proc/{self.process.pid}")
        # Not the dirty pages: those of a binary that was just built are among them.
        own = re.search(r"Anonymous: +(\d+)", (proc / "smaps_rollup").read_text())
        # The last question about the status may still be open to the daemon.
        counts = []
        for _ in range(20):
            counts.append(len(list((proc / "fd").iterdir())))
            time.sleep(0.02)
        return min(counts), int(own[1])

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=PATIENCE_S)


def cycle(daemon, receiver, number, announces=True):
    """Returns the seconds from plug to fix, and from unplug to its report."""
    fixes = daemon.source()["fixes"]
    receiver.plug(number, announces)
    seen, _ = daemon.wait(
        "first fix after a plug", lambda source: source["state"] == "receiving" and source["fixes"] > fixes, receiver.send)
    receiver.unplug(announces)
    lost, source = daemon.wait("lost after an unplug", lambda source: source["state"] == "lost")
    # Between the loss and this look it may have been looked for already.
    if not re.search("unplugged|No such file|plugged in", source["reason"]):
        sys.exit(f"FAIL  no reason for the loss: {source}")
    return seen, lost


def run(program, source, cycles, blind):
    with tempfile.TemporaryDirectory() as folder:
        link = pathlib.Path(folder) / "gps"
        receiver = Receiver(UMockdev.Testbed.new(), link)
        daemon = Daemon(program, source.format(link=link), pathlib.Path(folder))
        daemon.wait("nothing is plugged in", lambda source: source["state"] == "lost")
        times = []
        before = None
        for index in range(cycles):
            times.append(cycle(daemon, receiver, index % 3))
            if index + 1 == min(WARM_UP, cycles):
                before = daemon.holds()
        after = daemon.holds()
        for index in range(blind):
            cycle(daemon, receiver, index, announces=False)
        status = daemon.stop()
        daemon.log.seek(0)
        lines = daemon.log.read().count("\n")
        print(f"ok    {source}: {cycles} plugs, first fix within {max(t[0] for t in times):.2f} s, "
              f"loss within {max(t[1] for t in times):.2f} s; {blind} without events; {lines} lines in the log")
        print(f"      descriptors {before[0]} to {after[0]}, own memory {before[1]} kB to {after[1]} kB")
        # Its timer would take a second, most of the time.
        if sorted(seen for seen, _ in times)[cycles // 2] > 0.5:
            sys.exit("FAIL  events do not open the receiver")
        if after[0] > before[0] or after[1] > before[1] + LEAK_MAX_KB or status != 0:
            sys.exit(f"FAIL  a leak, or exit status {status}")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("program")
    options.add_argument("--cycles", type=int, default=50)
    options = options.parse_args()
    run(options.program, 'path = "{link}"', options.cycles, blind=2)
    run(options.program, 'serial_number = "G8-1"', max(1, options.cycles // 5), blind=0)


main()
