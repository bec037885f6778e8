"""Of scripts/live/idle, which gives it namespaces of its own."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from live import rig
from proof import drive

HERE, THERE = "10.9.0.1", "10.9.0.2"
CALL_MAX_S = 0.005
# The attachment of strace ends the wait of the loop. Flushes are those of the queue.
RESTS = {"restart_syscall"}
WAITS = {"epoll_wait", "epoll_pwait", "epoll_pwait2"}
FLUSHES = {"fsync", "fdatasync"}
# Other work on this host is no call of ours.
FIRST = ["chrt", "--fifo", "50"]
failures = 0


def ok(what, condition, detail=""):
    global failures
    print(f"{'ok   ' if condition else 'FAIL '} {what}: {detail}", flush=True)
    failures += not condition


def ip(*arguments):
    subprocess.run(["ip", *map(str, arguments)], check=True)


class Network:
    """This namespace, and another one behind a cable in which the broker is."""

    def __init__(self, stack):
        self.other = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(self.other.kill)
        own = os.readlink("/proc/self/ns/net")
        rig.within(5, lambda: os.readlink(f"/proc/{self.other.pid}/ns/net") != own)
        ip("link", "set", "lo", "up")
        ip("link", "add", "here", "type", "veth", "peer", "name", "there", "netns", self.other.pid)
        ip("addr", "add", f"{HERE}/24", "dev", "here")
        ip("link", "set", "here", "up")
        self.inside("ip", "addr", "add", f"{THERE}/24", "dev", "there")
        self.inside("ip", "link", "set", "there", "up")
        self.inside("ip", "link", "set", "lo", "up")
        # Beyond the cable there is nothing.
        ip("route", "add", "default", "via", THERE)

    def enter(self, *command):
        return ["nsenter", f"--net=/proc/{self.other.pid}/ns/net", *map(str, command)]

    def inside(self, *command):
        subprocess.run(self.enter(*command), check=True)

    def lose_the_router(self):
        """Nothing says so: packets go on to an address that nobody has."""
        found = pathlib.Path("/proc/net/arp").read_text()
        address = next(line.split()[3] for line in found.splitlines() if line.startswith(THERE + " "))
        ip("neigh", "replace", THERE, "lladdr", address, "dev", "here", "nud", "permanent")
        self.inside("ip", "link", "set", "there", "address", "02:00:00:00:00:99")


def broker(folder, network, stack, lines=""):
    configuration = folder / "mosquitto.conf"
    configuration.write_text(f"user root\nlistener 1883 {THERE}\nallow_anonymous true\n{lines}")
    with open(folder / "mosquitto.log", "ab") as log:
        process = subprocess.Popen(network.enter("mosquitto", "-c", configuration), stdout=log, stderr=log)
    stack.callback(process.kill)
    time.sleep(0.5)


class Fixes(threading.Thread):
    """One a second to a daemon that listens for datagrams."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.stopping = port, threading.Event()
        self.start()

    def run(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            number = 0
            while not self.stopping.wait(1):
                sender.sendto(drive.epoch(number), ("127.0.0.1", self.port))
                number += 1


def daemon(folder, name, url, *wrapper, **settings):
    """On a memory file system: how long a disk takes is measured elsewhere."""
    here = folder / name
    here.mkdir()
    port = rig.free_port()
    found = rig.Daemon(here, url, f'kind = "udp"\nport = {port}', **settings).start(*wrapper)
    found.port = port
    return found


def wakeups(folder, network, stack):
    """Wake-ups with a connection that nobody uses"""
    broker(folder, network, stack, "log_type all\n")
    # The same without a connection: it has nothing to send.
    with_broker = daemon(folder, "mqtt", f"mqtt://{THERE}")
    without = daemon(folder, "http", f"http://{THERE}:1", profile="waypost")
    for each in (with_broker, without):
        stack.callback(each.stop)
    counts = []
    # Each question wakes both of them as often.
    for moment in (60, 120, 460):
        time.sleep(moment - (counts[-1][0] if counts else 0))
        counts.append((moment, with_broker.status()["wakeups"], without.status()["wakeups"]))
    (_, first, first_without), (_, second, second_without), (_, last, last_without) = counts
    log = (folder / "mosquitto.log").read_text()
    made, pings = log.count(" as waypost-van-7 "), log.count("Received PINGREQ from waypost-van-7")
    ok("the connection is there all the time", made == 1 and "disconnected" not in log, f"made {made} times, {pings} PINGREQ")
    more = first - first_without
    ok("in the first 60 s the connection, its CONNACK and its birth wake it at most 4 times", more <= 4,
       f"{more} ({first}, without a broker {first_without})")
    ok("in the next 60 s nothing", second - first <= second_without - first_without,
       f"{second - first}, without a broker {second_without - first_without}")
    more = (last - second) - (last_without - second_without)
    ok("in the next 340 s one PINGREQ and one PINGRESP", more <= 2 and pings == 1, f"{more} more than without a broker")


def longest(path, main):
    """Of the first thread: the longest call beside rests and flushes, the longest flush, and how often the loop woke."""
    calls, woken = [], 0
    for line in path.read_text(errors="replace").splitlines():
        # Another thread may wait: libcurl resolves names in one.
        found = re.search(rf"^{main} +(?:<\.\.\. )?(\w+).*<(\d+\.\d+)>$", line)
        if not found:
            continue
        name, seconds = found.group(1), float(found.group(2))
        if name in WAITS:
            woken += 1
        elif name not in RESTS:
            calls.append((seconds, name))
    flushes = [each for each in calls if each[1] in FLUSHES]
    return max((each for each in calls if each[1] not in FLUSHES), default=(0, "none")), max(flushes, default=(0, "none")), woken


@contextlib.contextmanager
def traced(folder, name, url, seconds, **settings):
    """A daemon under strace, the calls of its start apart."""
    output = folder / f"{name}.strace"
    found = daemon(folder, name, url, *FIRST, **settings)
    tracer = subprocess.Popen([*FIRST, "strace", "-f", "-T", "-q", "-o", output, "-p", str(found.process.pid)], stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    fixes = Fixes(found.port)
    yield found
    began = longest(output, found.process.pid)[2]
    time.sleep(seconds)
    state = found.endpoint()
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    fixes.stopping.set()
    found.stop(signal.SIGKILL)
    (seconds_of_call, call), flush, woken = longest(output, found.process.pid)
    woken -= began
    ok(f"{name}: no call takes longer than 5 ms", seconds_of_call <= CALL_MAX_S,
       f"{seconds_of_call * 1000:.2f} ms ({call}), flush of the queue {flush[0] * 1000:.2f} ms; "
       f"{woken} wake-ups in {seconds} s with a fix each second; {state.get('problem')}")


def calls(folder, network, stack):
    """The longest calls of the daemon in the weather of a vehicle"""
    eager = 'publish_rate = "engine"\nbatch_window = "1s"\ntimeout = "10s"'
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", folder / "resolv.conf", os.path.realpath("/etc/resolv.conf")], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 53))
        with traced(folder, "name-server-mute", "mqtt://broker.example", 40, endpoint=eager):
            pass
    with traced(folder, "black-hole", "mqtt://192.0.2.1", 40, endpoint=eager):
        pass
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=broker", "-addext", f"subjectAltName=IP:{THERE}", "-keyout", "key.pem", "-out", "cert.pem"],
                   check=True, capture_output=True, cwd=folder)
    broker(folder, network, stack, f"listener 8883 {THERE}\ncertfile {folder}/cert.pem\nkeyfile {folder}/key.pem\n")
    subscriber = subprocess.Popen(network.enter("mosquitto_sub", "-h", THERE, "-t", "fleet/#"), stdout=subprocess.DEVNULL)
    stack.callback(subscriber.kill)
    with traced(folder, "router-gone-in-TLS", f"mqtts://{THERE}", 60, endpoint=f'{eager}\ntls = {{ ca = "{folder}/cert.pem" }}') as found:
        sent = rig.within(60, lambda: found.endpoint().get("acked"), 0.5)
        network.lose_the_router()
    ok("router-gone-in-TLS: locations were published before", bool(sent), sent)


# Servers are ended on the way out.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
parts = {each.__name__: each for each in (wakeups, calls)}
for part in sys.argv[1:] or parts:
    if part not in parts:
        sys.exit(f"idle: there is no {part}; there are {', '.join(parts)}")
    print(f"# {parts[part].__doc__}", flush=True)
    with tempfile.TemporaryDirectory(prefix="waypost-idle-", dir="/dev/shm") as scratch, contextlib.ExitStack() as everything:
        parts[part](pathlib.Path(scratch), Network(everything), everything)
        # The next part makes its own.
        ip("link", "del", "here")
sys.exit(1 if failures else 0)
