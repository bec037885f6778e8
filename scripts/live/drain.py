"""What scripts/live/drain measures: the same payloads published by the daemon from its queue, and by a program with libmosquitto."""
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from live import rig

WINDOW = 20
PATH = os.environ["PATH"] + ":/usr/sbin"


@contextlib.contextmanager
def running(command, port, log):
    """A server that listens on this port."""
    with open(log, "ab") as output:
        process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output)
    try:
        if not rig.within(10, lambda: rig.listens(port)):
            sys.exit(f"drain: {command[0]} does not listen: {log.read_text()[-500:]}")
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def broker(folder, port):
    configuration = folder / "mosquitto.conf"
    configuration.write_text(f"user root\nlistener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
    with running([shutil.which("mosquitto", path=PATH), "-c", configuration], port, folder / "mosquitto.log"):
        yield


@contextlib.contextmanager
def subscriber(port, output):
    """Somebody must be there, or the broker says that nobody stored the message."""
    with open(output, "wb") as file:
        process = subprocess.Popen(["mosquitto_sub", "-p", str(port), "-t", "fleet/#", "-V", "mqttv5"], stdout=file)
    try:
        time.sleep(0.5)
        yield
        time.sleep(0.5)
    finally:
        process.kill()
        process.wait()


class Peak(threading.Thread):
    """The largest anonymous and resident memory of a process, in MiB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.anonymous, self.resident = pid, 0, 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError, KeyError):
            while True:
                text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
                fields = dict(line.split(":\t", 1) for line in text.splitlines())
                self.anonymous = max(self.anonymous, int(fields["RssAnon"].split()[0]) / 1024)
                self.resident = max(self.resident, int(fields["VmRSS"].split()[0]) / 1024)
                time.sleep(0.02)


def ended(process, said):
    """Processor seconds of a process that ends by itself, and how long that took."""
    began = time.monotonic()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"drain: status {process.returncode}: {said()}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began


class Queue:
    """A folder with a queue that was filled while nobody listened at the address of its endpoint."""

    def __init__(self, folder, url, profile, count):
        self.folder, self.url, self.profile = folder, url, profile
        folder.mkdir()
        log = rig.log(folder / "drive.nmea", count)
        daemon = rig.Daemon(folder, url, f'kind = "file"\npath = "{log}"\nplayback = "max"', profile=profile).start()
        if not rig.within(120, lambda: daemon.status().get("source", {}).get("state") == "ended"):
            sys.exit(f"drain: the queue is not filled: {daemon.said()}")
        self.rows = daemon.endpoint()["waiting"]
        daemon.stop()
        # The next one reads nothing and sends what is there.
        log.write_bytes(b"")

    def drained(self, copy, endpoint, empty=False):
        """What a daemon takes that finds a copy of this queue, until it ends with all of it sent."""
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for each in [] if empty else self.folder.glob("outbox*"):
            shutil.copy(each, copy)
        source = f'kind = "file"\npath = "{self.folder}/drive.nmea"\nplayback = "max"'
        daemon = rig.Daemon(copy, self.url, source, endpoint, profile=self.profile).start()
        peak = Peak(daemon.process.pid)
        try:
            return *ended(daemon.process, daemon.said), peak
        finally:
            daemon.stop()


def lines(path):
    with open(path, "rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


class Table:
    """Contestants that take turns."""

    def __init__(self, rows):
        self.rows, self.cpus, self.walls = rows, {}, {}

    def add(self, what, cpu, wall):
        self.cpus.setdefault(what, []).append(cpu)
        self.walls.setdefault(what, []).append(wall)

    def show(self):
        print("| who | CPU, median (least to most) | per location | locations per second | CPU, ratio |\n| --- | --- | --- | --- | --- |")
        least = statistics.median(next(iter(self.cpus.values())))
        for what, cpus in self.cpus.items():
            cpu, rate = statistics.median(cpus), self.rows / statistics.median(self.walls[what])
            print(f"| {what} | {cpu:.2f} s ({min(cpus):.2f} to {max(cpus):.2f}) | {cpu / self.rows * 1e6:.1f} µs "
                  f"| {rate:,.0f} | {cpu / least:.2f} |")


def settings(batch):
    return f'publish_rate = "engine"\nbatch_size = {batch}'


def measure(folder, program, count, runs, batches):
    port = rig.free_port()
    queue = Queue(folder / "queue", f"mqtt://127.0.0.1:{port}", "waypost-mqtt", count)
    table, payloads, memory = Table(queue.rows), folder / "payloads", {}
    with broker(folder, port):
        with subscriber(port, folder / "all"):
            queue.drained(folder / "copy", settings(batches[0]))
        with open(folder / "all", "rb") as every, open(payloads, "wb") as file:
            file.writelines(line for line in every if line.startswith(b"{"))
        if (found := lines(payloads)) != queue.rows:
            sys.exit(f"drain: {found} of {queue.rows} locations arrived")
        with subscriber(port, "/dev/null"):
            for run in range(runs):
                for what, more in (("libmosquitto, from memory", []), (f"libmosquitto, from SQLite, {batches[-1]} at a time", [folder / f"rows{run}.db", batches[-1]])):
                    out = subprocess.run(list(map(str, [program, port, "fleet/van-7/location", payloads, WINDOW, *more])),
                                         check=True, capture_output=True, text=True).stdout
                    table.add(what, *map(float, out.split()))
                for batch in batches:
                    cpu, wall, peak = queue.drained(folder / "copy", settings(batch))
                    table.add(f"waypost, `batch_size = {batch}`", cpu, wall)
                    memory.setdefault(batch, []).append(peak)
                cpu, wall, peak = queue.drained(folder / "copy", settings(batches[0]), empty=True)
                table.add("of it waypost with an empty queue", cpu, wall)
    table.show()
    return memory


def http(folder, count, runs):
    """The memory of the same drained over HTTP."""
    port = rig.free_port()
    queue = Queue(folder / "queue-http", f"http://127.0.0.1:{port}", "waypost", count)
    collector = rig.WAYPOST.with_name("waypost-collector")
    with running([collector, "--quiet", "--port", port, "--output", folder / "received.jsonl"], port, folder / "collector.log"):
        return [queue.drained(folder / "copy", "batch_size = 100")[2] for _ in range(runs)]


def show_memory(peaks):
    print("\n| memory at most | anonymous | RSS |\n| --- | --- | --- |")
    base = None
    for what, each in peaks.items():
        found = [statistics.median(getattr(peak, name) for peak in each) for name in ("anonymous", "resident")]
        base = base or found
        print(f"| {what} | " + " | ".join(f"{value:.2f} MiB ({value - less:+.2f})" for value, less in zip(found, base)) + " |")


def main():
    # Servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    count, runs = (int(each) for each in (sys.argv[1:] + ["100000", "5"][len(sys.argv) - 1:])[:2])
    with tempfile.TemporaryDirectory(prefix="waypost-drain-") as name:
        folder, here = pathlib.Path(name), pathlib.Path(__file__).parent
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", here / "publisher.c", "-o", folder / "publisher",
                        "-lmosquitto", "-lsqlite3"], check=True)
        base = http(folder, count, runs)
        memory = measure(folder, folder / "publisher", count, runs, [100, 300, 1000])
        show_memory({"HTTP, `batch_size = 100`": base} | {f"MQTT, `batch_size = {batch}`": peaks for batch, peaks in memory.items()})


main()
