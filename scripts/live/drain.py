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
    """The largest anonymous and resident memory of a process, in MiB, and the seconds of processor of all threads but the first.
    Of waypost that is the writer: SQLite, its files and flushes, and the rows that are read. The loop has all the rest."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.anonymous, self.resident, self.writer = pid, 0, 0, 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError, KeyError):
            while True:
                text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
                fields = dict(line.split(":\t", 1) for line in text.splitlines())
                self.anonymous = max(self.anonymous, int(fields["RssAnon"].split()[0]) / 1024)
                self.resident = max(self.resident, int(fields["VmRSS"].split()[0]) / 1024)
                others = [each for each in pathlib.Path(f"/proc/{self.pid}/task").iterdir() if each.name != str(self.pid)]
                self.writer = max(self.writer, sum(int((each / "schedstat").read_text().split()[0]) for each in others) / 1e9)
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
    """Contestants that take turns; those with a batch size have rows of SQLite."""

    MEMORY = "libmosquitto, payloads in memory"

    def __init__(self, rows):
        self.rows, self.found = rows, {}

    def add(self, what, cpu, wall=None):
        self.found.setdefault(what, []).append((cpu, wall))

    @staticmethod
    def from_sqlite(batch):
        return f"libmosquitto, payloads in SQLite, {batch} at a time"

    def ratio(self, what, other):
        """Of each run, because the machine is faster in some than in others: median (least to most)."""
        ratios = [cpu / least for (cpu, _), (least, _) in zip(self.found[what], self.found[other])]
        return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    def show(self, batches):
        """`batches`: the batch size of each contestant that has one."""
        print("| who | CPU per location, median (least to most) | against libmosquitto from memory | from SQLite, as large a batch "
              "| locations per second |\n| --- | --- | --- | --- | --- |")
        for what, each in self.found.items():
            cpus = [cpu / self.rows * 1e6 for cpu, _ in each]
            walls = [wall for _, wall in each if wall]
            rival = self.from_sqlite(batches[what]) if what in batches else what
            print(f"| {what} | {statistics.median(cpus):.1f} µs ({min(cpus):.1f} to {max(cpus):.1f}) "
                  f"| {self.ratio(what, self.MEMORY) if what != self.MEMORY else ''} "
                  f"| {self.ratio(what, rival) if what != rival else ''} "
                  f"| {f'{self.rows / statistics.median(walls):,.0f}' if walls else ''} |")


def settings(batch):
    return f'publish_rate = "engine"\nbatch_size = {batch}'


def measure(folder, program, count, runs, batches):
    port = rig.free_port()
    queue = Queue(folder / "queue", f"mqtt://127.0.0.1:{port}", "waypost-mqtt", count)
    table, payloads, memory, sizes = Table(queue.rows), folder / "payloads", {}, {}
    with broker(folder, port):
        with subscriber(port, folder / "all"):
            queue.drained(folder / "copy", settings(batches[0]))
        with open(folder / "all", "rb") as every, open(payloads, "wb") as file:
            file.writelines(line for line in every if line.startswith(b"{"))
        if (found := lines(payloads)) != queue.rows:
            sys.exit(f"drain: {found} of {queue.rows} locations arrived")
        with subscriber(port, "/dev/null"):
            for run in range(runs):
                publish = list(map(str, [program, port, "fleet/van-7/location", payloads, WINDOW]))
                contestants = [(Table.MEMORY, [])]
                contestants += [(Table.from_sqlite(batch), [str(folder / f"rows-{run}-{batch}.db"), str(batch)]) for batch in batches]
                for what, more in contestants:
                    out = subprocess.run([*publish, *more], check=True, capture_output=True, text=True).stdout
                    table.add(what, *map(float, out.split()))
                for batch in batches:
                    cpu, wall, peak = queue.drained(folder / "copy", settings(batch))
                    name = f"waypost, `batch_size = {batch}`"
                    sizes[name] = batch
                    table.add(name, cpu, wall)
                    table.add(f"{name}, without SQLite: its loop alone", cpu - peak.writer)
                    memory.setdefault(batch, []).append(peak)
                cpu, wall, peak = queue.drained(folder / "copy", settings(batches[0]), empty=True)
                table.add("of it waypost with an empty queue", cpu, wall)
    table.show(sizes)
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
