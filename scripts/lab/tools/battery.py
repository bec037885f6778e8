"""Supplies that exist for one daemon alone: sysfs and the events of udev are umockdev's."""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import gi

from proof.drive import checksummed

gi.require_version("UMockdev", "1.0")
from gi.repository import UMockdev  # noqa: E402

PATIENCE_S = 60
# Sooner than any look without an event.
BY_EVENT_S = 5
# A low battery is looked at every 10 s.
BY_LOOK_S = 15
# At a pace that umockdev survives: its sender ends the program when the queue of ten is full.
FLOOD, FLOOD_PAUSE_S = 500, 0.005


class Daemon:
    def __init__(self, program, folder):
        self.socket = folder / "control.sock"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (folder / "waypost.toml").write_text(
            f'[device]\nid = "lab"\n[source]\nkind = "udp"\nport = {self.port}\nrollover = "off"\n'
            f'[outbox]\npath = "{folder}/outbox.db"\n[control]\nsocket = "{self.socket}"\n')
        self.log = open(folder / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "run", "--config", folder / "waypost.toml"], stderr=self.log)
        self.second = 0

    def ask(self, order):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE_S)
        with client:
            client.connect(str(self.socket))
            client.sendall(json.dumps({"id": 1, **order}).encode() + b"\n")
            return json.loads(client.makefile().readline())

    def fix(self):
        self.second += 1
        clock = f"08{self.second // 60 % 60:02d}{self.second % 60:02d}.00"
        place = "5230.0000,N,01324.0000,E"
        text = checksummed(f"GPRMC,{clock},A,{place},0.0,,040526,,,A") + checksummed(
            f"GPGGA,{clock},{place},1,09,0.9,34.0,M,44.0,M,,")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(text, ("127.0.0.1", self.port))

    def status(self):
        try:
            return self.ask({"do": "status"})
        except (FileNotFoundError, ConnectionError):
            return {}

    def wait(self, what, wanted, within=PATIENCE_S, meanwhile=lambda: None):
        began = time.monotonic()
        while True:
            status = self.status()
            if status and wanted(status):
                print(f"ok    {what} ({time.monotonic() - began:.1f} s)")
                return status
            if self.process.poll() is not None or time.monotonic() - began > within:
                self.fail(f"{what}: {status.get('power')}")
            meanwhile()
            time.sleep(0.02)

    def text(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(encoding="utf-8")

    def fail(self, what):
        self.process.kill()
        sys.exit(f"FAIL  {what}\n{self.text()[-4000:]}")

    def says(self, line, times):
        found = self.text().count(line)
        if found != times:
            self.fail(f"{found} times instead of {times} in the log: {line}")

    def switches(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("voluntary_ctxt_switches:")[1].split()[0])


def power(**wanted):
    return lambda status: all(status["power"].get(key) == value for key, value in wanted.items())


def run(program):
    with tempfile.TemporaryDirectory() as folder:
        testbed = UMockdev.Testbed.new()

        def supply(name, attributes):
            return testbed.add_device(
                "power_supply", name, None, [part for pair in attributes.items() for part in pair],
                ["POWER_SUPPLY_NAME", name])

        def change(device, announces=True, **attributes):
            for name, value in attributes.items():
                testbed.set_attribute(device, name, value + "\n")
            if announces:
                testbed.uevent(device, "change")

        mouse = supply("hid-00:1f-battery", {"type": "Battery\n", "scope": "Device\n", "online": "1\n", "capacity": "4\n"})
        daemon = Daemon(program, pathlib.Path(folder))
        daemon.wait("a mouse is no battery", power(battery=None, external=None, low=False))
        daemon.wait("a position for the record", lambda status: status["motion"]["admitted"] > 5, meanwhile=daemon.fix)
        daemon.ask({"do": "pace", "moving": False})

        charger = supply("AC", {"type": "Mains\n", "online": "0\n"})
        battery = supply(
            "sbs-5-000b",
            {"type": "Battery\n", "present": "1\n", "status": "Discharging\n", "capacity": "77\n", "capacity_level": "Normal\n"})
        daemon.wait("a battery is put in", power(battery=77, charging=False, external=False, low=False), BY_EVENT_S)
        change(battery, capacity="103", status="Full")
        daemon.wait("it says 103", power(battery=100, low=False), BY_EVENT_S)
        change(battery, capacity="12", status="Discharging")
        daemon.wait("it runs low", power(battery=12, low=True), BY_EVENT_S)
        daemon.says("power: the battery is low, 12 %", 1)
        change(battery, announces=False, capacity="11")
        daemon.wait("it sinks without an event", power(battery=11), BY_LOOK_S)
        change(charger, online="1")
        change(battery, status="Charging")
        daemon.wait("it is fed", power(charging=True, external=True), BY_EVENT_S + 3)
        daemon.says("power: external power is back, battery at 11 %", 1)
        change(charger, online="0")
        change(battery, status="Discharging")
        daemon.wait("power is lost", power(charging=False, external=False), BY_EVENT_S + 3)
        daemon.says("power: external power is gone", 1)

        before = daemon.switches()
        began = time.monotonic()
        for _ in range(FLOOD):
            testbed.uevent(battery, "change")
            time.sleep(FLOOD_PAUSE_S)
        change(battery, capacity="10")
        daemon.wait("events without end", power(battery=10), BY_EVENT_S)
        print(f"      {FLOOD} events in {time.monotonic() - began:.1f} s: {daemon.switches() - before} wake-ups")

        change(battery, present="", status="", capacity="")
        daemon.wait("everything is empty", power(battery=None), BY_EVENT_S)
        testbed.uevent(battery, "remove")
        testbed.remove_device(battery)
        daemon.wait(
            "it is taken out", lambda status: list(status["power"]["supplies"]) == ["AC"], BY_EVENT_S)
        daemon.says("power supply sbs-5-000b: gone", 1)
        daemon.says("power supply sbs-5-000b: battery, cannot be read", 1)
        # Once low, whatever came after.
        daemon.says("power: the battery is low", 1)
        daemon.says("hid-00", 0)
        testbed.remove_device(mouse)
        daemon.process.terminate()
        if daemon.process.wait(timeout=PATIENCE_S) != 0:
            daemon.fail("its end")
        print(f"ok    {daemon.text().count('power')} lines about power in the log")


run(sys.argv[1])
