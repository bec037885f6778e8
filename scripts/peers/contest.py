"""The same job for waypost and for what people use instead: sentences → a queue on a card → one sink.

    RMC sentences of a log, all at once; every record reaches the sink; CPU is user and system time of the process until then,
    flash what the loop device was written until then and by a sync after it.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

from proof import card, drive

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ["rsyslog", "rsyslog-elasticsearch", "syslog-ng-core", "syslog-ng-mod-http"]
LIBRARIES = ["libestr0", "libfastjson4", "liblognorm5", "libivykis0", "libjson-c5", "libnet1", "libwrap0", "libpcre3", "libglib2.0-0"]
PATIENCE_S = 300


class Contestant:
    def __init__(self, name, command, fixes, environment=None, notes=""):
        self.name, self.command, self.fixes, self.environment, self.notes = name, command, fixes, environment, notes


def unpacked(folder):
    """The peers, beside the system and not in it: two of them exclude each other as packages."""
    root = folder / "root"
    if not root.exists():
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise card.Unavailable("needs root and apt-get to fetch the peers")
        for command in (["apt-get", "update", "-q"], ["apt-get", "install", "-qy", "--no-install-recommends", *LIBRARIES]):
            subprocess.run(command, check=True, capture_output=True)
        packed = folder / "packed"
        packed.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *PACKAGES], check=True, capture_output=True, cwd=packed)
        for package in packed.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, root], check=True)
    venv = folder / "venv"
    if not venv.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "-q", "pynmea2", "requests"], check=True)
    return root, venv


def rsyslog(root, folder, log, port, queue, name):
    config = folder / f"rsyslog-{name}.conf"
    work = folder / "queue"
    fields = {"t": 2, "lat": 4, "lon": 6, "speed": 8, "bearing": 9}
    members = "\n  constant(value=\",\")\n".join(
        f'  constant(value="\\"{key}\\":\\"") property(name="msg" field.number="{number}" field.delimiter="44") constant(value="\\"")'
        for key, number in fields.items())
    config.write_text(f"""
global(workDirectory="{work}")
module(load="imfile")
module(load="omelasticsearch")
template(name="fix" type="list") {{
  constant(value="{{")
{members}
  constant(value="}}")
}}
input(type="imfile" File="{log}" Tag="nmea" ruleset="out")
ruleset(name="out") {{
  action(type="omelasticsearch" server="127.0.0.1" serverport="{port}" template="fix" searchIndex="fixes" bulkmode="on"
    {queue} queue.filename="q" queue.dequeueBatchSize="100" action.resumeRetryCount="-1")
}}
""")
    return [root / "usr/sbin/rsyslogd", "-n", "-f", config, "-i", folder / "rsyslog.pid",
            "-M", root / "usr/lib/x86_64-linux-gnu/rsyslog"]


def syslog_ng(root, folder, log, port):
    config = folder / "syslog-ng.conf"
    config.write_text(f"""@version: 3.38
options {{ stats-freq(0); }};
source s {{ file("{log}" flags(no-parse) follow-freq(0.1) log-fetch-limit(1000) log-iw-size(10000)); }};
parser p {{ csv-parser(columns("k", "t", "a", "lat", "ns", "lon", "ew", "v", "c", "d") delimiters(",") flags(greedy)); }};
destination d {{ http(url("http://127.0.0.1:{port}/syslog-ng") method("POST") batch-lines(100) batch-timeout(500) workers(1)
  body-prefix("[") delimiter(",") body-suffix("]")
  body('{{"t":"${{t}}","lat":"${{lat}}","lon":"${{lon}}","speed":"${{v}}","bearing":"${{c}}"}}')
  disk-buffer(reliable(yes) disk-buf-size(67108864) mem-buf-size(10485760) dir("{folder}/queue"))); }};
log {{ source(s); parser(p); destination(d); flags(flow-control); }};
""")
    return [root / "usr/sbin/syslog-ng", "-F", "--no-caps", "-f", config, "-R", folder / "queue/persist",
            "-c", folder / "ng.ctl", "-p", folder / "ng.pid", f"--module-path={root}/usr/lib/syslog-ng/3.38"]


def waypost(binary, folder, log, port, source='playback = "max"', outbox="", endpoint=""):
    config = folder / "waypost.toml"
    config.write_text(
        f'[device]\nid = "bench"\n[source]\nkind = "file"\npath = "{log}"\n{source}\nrollover = "off"\n'
        f'[control]\nsocket = "{folder}/control.sock"\n[outbox]\npath = "{folder}/queue/outbox.db"\n{outbox}\n'
        '[tracking]\nstart_moving = true\ndisable_stop_detection = true\n[sampling]\npreset = "active"\n'
        f'[[endpoint]]\nbase_url = "http://127.0.0.1:{port}/waypost"\n{endpoint}\n')
    return [binary, "run", "--config", config]


def contestants(binary, root, venv, folder, logs, port):
    """In the order of the table; each call is a fresh start in an empty `folder`/queue."""
    library = {"LD_LIBRARY_PATH": f"{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/syslog-ng:{root}/usr/lib/syslog-ng/3.38"}
    few, many = sorted(logs)
    tracker = [venv / "bin/python", HERE / "tracker.py"]
    url = f"http://127.0.0.1:{port}/tracker"
    safe = 'queue.type="Disk" queue.syncQueueFiles="on" queue.checkpointInterval="1"'
    fast = 'queue.type="LinkedList" queue.size="50000" queue.saveOnShutdown="on"'
    yield Contestant("waypost", waypost(binary, folder, logs[many], port), many)
    yield Contestant("Python script, SQLite defaults", [*tracker, logs[few], folder / "queue/q.db", url, "defaults"], few)
    yield Contestant("Python script, WAL and NORMAL", [*tracker, logs[many], folder / "queue/q.db", url, "wal"], many)
    yield Contestant("rsyslog, disk queue, sync on, checkpoint 1", rsyslog(root, folder, logs[few], port, safe, "safe"), few, library)
    yield Contestant("rsyslog, queue in memory, disk assisted", rsyslog(root, folder, logs[many], port, fast, "fast"), many, library)
    yield Contestant("syslog-ng, reliable disk buffer", syslog_ng(root, folder, logs[many], port), many, library)


def asked(port, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/stats", method=method), timeout=10) as reply:
        return json.loads(reply.read() or b"{}")


def ran(contestant, port, medium, mount):
    """What one run took."""
    asked(port, "DELETE")
    os.sync()
    before = device(medium)
    environment = {**os.environ, **(contestant.environment or {})}
    process = subprocess.Popen(list(map(str, contestant.command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    peak, busy, seen = 0, 0.0, {"records": 0}
    deadline = time.monotonic() + PATIENCE_S
    try:
        while seen["records"] < contestant.fixes and time.monotonic() < deadline:
            time.sleep(0.05)
            with contextlib.suppress(OSError, KeyError, IndexError, ValueError):
                peak, busy = max(peak, resident(process.pid)), max(busy, cpu(process.pid))
            ended = process.poll() is not None
            seen = asked(port)
            if ended:
                break
    finally:
        running = process.poll() is None
        if running:
            with contextlib.suppress(OSError):
                busy = cpu(process.pid)
            process.send_signal(signal.SIGTERM)
        try:
            errors = process.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            errors = process.communicate()[1]
    if seen["records"] < contestant.fixes * 0.99:
        raise RuntimeError(f"{contestant.name}: {seen['records']} of {contestant.fixes} arrived: {errors.decode()[-500:]}")
    subprocess.run(["sync", "-f", mount], check=True)
    after = device(medium)
    fixes = contestant.fixes / 1000
    return {"cpu": busy * 1e3 / fixes, "rss": peak / 1024, "flash": (after[0] - before[0]) / contestant.fixes,
            "flushes": (after[1] - before[1]) / fixes, "requests": seen["requests"], "inversions": seen["inversions"],
            "repeated": seen["repeated"]}


def device(medium):
    fields = pathlib.Path(f"/sys/block/{medium.device}/stat").read_text().split()
    return int(fields[6]) * 512, int(fields[15]) if len(fields) > 15 else 0


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmHWM:")), 0)


def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def contest(binary, out, runs, few=3000, many=20_000):
    """Rows of the table: name, fixes, and the medians of each figure; the contestants take turns."""
    root, venv = unpacked(out / "peers")
    results, fixes, failed = {}, {}, {}
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(card.scratch_folder()))
        logs = {}
        for count in (few, many):
            logs[count] = folder / f"{count}.nmea"
            logs[count].write_bytes(b"".join(map(drive.epoch, range(count))))
        sink = subprocess.Popen([sys.executable, HERE / "sink.py"], stdout=subprocess.PIPE, text=True)
        stack.callback(sink.kill)
        port = int(sink.stdout.readline())
        for _ in range(runs):
            for index in range(6):
                with contextlib.ExitStack() as trial:
                    place = folder / "trial"
                    place.mkdir()
                    trial.callback(shutil.rmtree, place, ignore_errors=True)
                    medium = card.Card(place, trial, size=512 << 20)
                    (place / "queue").symlink_to(medium.mount)
                    contestant = list(contestants(binary, root, venv, place, logs, port))[index]
                    fixes[contestant.name] = contestant.fixes
                    try:
                        results.setdefault(contestant.name, []).append(ran(contestant, port, medium, medium.mount))
                    except RuntimeError as problem:
                        failed[contestant.name] = str(problem)
    for name, count in fixes.items():
        if name in results:
            medians = {key: statistics.median(run[key] for run in results[name]) for key in results[name][0]}
            deviation = statistics.median(abs(run["cpu"] - medians["cpu"]) for run in results[name])
            yield name, count, {**medians, "cpu deviation": deviation, "runs": len(results[name])}, failed.get(name)
        else:
            yield name, count, None, failed.get(name)
