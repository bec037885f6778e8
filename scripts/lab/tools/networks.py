"""The cases of scripts/lab/networks. Each prints what it measured, and ok or FAIL by its goal."""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from lab.tools import vehicle
from lab.tools.wire import TCP
from proof import daemon as proof

SOON = 3
QUICK = 'batch_window = "2s"'
PLAIN = 'batch_window = "2s"\nallow_plaintext = true'
CASES = {}


def case(words, scheme="http", keys=QUICK, short=False, links=("wlan0", "wwan0"), starts=True):
    """A function of a lab that returns whether the goal is reached, and figures: first = seconds from link-up to the first
    accepted row, for each time; rows and bytes of a window; note."""
    def enter(measure):
        CASES[measure.__name__.replace("_", "-")] = (words, scheme, keys, short, links, starts, measure)
        return measure
    return enter


def within(firsts, limit):
    return all(first is not None and first <= limit for first in firsts)


def settle(lab, link="wlan0", least=6):
    """Locations flow over a link."""
    at = lab.connect(link)
    if lab.ledger.first(at, 60) is None:
        raise RuntimeError(f"nothing was accepted over {link}")
    time.sleep(least)


def changes(lab, rounds=2):
    """The link is silent for a second, as when a vehicle leaves its Wi-Fi, before another one is there."""
    settle(lab)
    firsts = []
    for _ in range(rounds):
        for old, new in (("wlan0", "wwan0"), ("wwan0", "wlan0")):
            lab.wires[old].is_up = False
            time.sleep(1.2)
            lab.disconnect(old)
            firsts.append(lab.ledger.first(lab.connect(new), 90))
            time.sleep(4)
    return within(firsts, SOON), {"first": firsts}


@case("Wi-Fi to LTE and back, HTTP", short=True)
def change_http(lab):
    return changes(lab)


@case("Wi-Fi to LTE and back, HTTPS", scheme="https")
def change_https(lab):
    return changes(lab)


@case("Wi-Fi to LTE and back, MQTT", scheme="mqtt", short=True)
def change_mqtt(lab):
    return changes(lab)


@case("Wi-Fi to LTE while the server thinks", short=True)
def change_in_flight(lab):
    settle(lab)
    lab.http.answer = lambda client: (200, {}, 8 if client.startswith("10.1.") else 0)
    time.sleep(4)
    lab.disconnect("wlan0")
    firsts = [lab.ledger.first(lab.connect("wwan0"), 90)]
    return within(firsts, SOON), {"first": firsts}


@case("another link beside one that goes silent a moment later")
def change_overlapping(lab):
    settle(lab)
    lab.wires["wlan0"].is_up = False
    time.sleep(1)
    # The new default route comes first; the old address stays for a while.
    at = lab.connect("wwan0")
    firsts = [lab.ledger.first(at, 90)]
    lab.disconnect("wlan0")
    return within(firsts, SOON), {"first": firsts}


@case("a new address on the same link every 20 s")
def new_address(lab):
    settle(lab)
    firsts = []
    for host in range(3, 7):
        firsts.append(lab.ledger.first(lab.connect("wlan0", host), 20))
        time.sleep(max(0.0, 20 - (firsts[-1] or 20)))
    return within(firsts, SOON), {"first": firsts}


def windows(lab, lasts, pause, count):
    settle(lab)
    lab.disconnect("wlan0")
    firsts, rows, sizes = [], [], []
    for _ in range(count):
        time.sleep(pause)
        before, at = lab.sent(), lab.connect("wlan0")
        firsts.append(lab.ledger.first(at, lasts))
        time.sleep(max(0.0, at + lasts - time.monotonic()))
        rows.append(lab.ledger.rows(at, at + lasts))
        sizes.append(lab.sent()[0] - before[0])
        lab.disconnect("wlan0")
    return firsts, rows, sizes


@case("a link for 20 s in each minute")
def windows_20(lab):
    firsts, rows, sizes = windows(lab, 20, 40, 3)
    return within(firsts, SOON), {"first": firsts, "rows": rows, "bytes": sizes}


@case("a link that flaps: 6 s up, 3 s down")
def flapping(lab):
    firsts, rows, sizes = windows(lab, 6, 3, 6)
    return within(firsts, SOON), {"first": firsts, "rows": rows, "bytes": sizes}


@case("a router that is always up, behind it 45 s of network after five and two minutes")
def behind_a_router(lab):
    settle(lab)
    wire = lab.wires["wlan0"]
    firsts, rows, sizes, woken = [], [], [], []
    for dark in (300, 120):
        wire.is_up = False
        before, wakeups, at = lab.sent()[0], lab.status().get("wakeups", 0), time.monotonic()
        time.sleep(dark)
        sizes.append(round((lab.sent()[0] - before) / (time.monotonic() - at) * 60))
        woken.append(round((lab.status().get("wakeups", 0) - wakeups) / (time.monotonic() - at) * 60))
        wire.is_up = True
        at = time.monotonic()
        firsts.append(lab.ledger.first(at, 45))
        time.sleep(max(0.0, at + 45 - time.monotonic()))
        rows.append(lab.ledger.rows(at, at + 45))
    return within(firsts, 40), {
        "first": firsts, "rows": rows, "bytes": sizes, "note": f"bytes and wake-ups a minute in the dark, {woken}"}


def crawling(lab, rate, rows, seconds, least):
    """A backlog over a slow link."""
    settle(lab, least=0)
    lab.disconnect("wlan0")
    lab.drive(rows)
    lab.wires["wlan0"].rate = rate
    before, at = lab.sent()[0], lab.connect("wlan0")
    time.sleep(seconds)
    got, sent = lab.ledger.rows(at), lab.sent()[0] - before
    return got >= least, {"first": [lab.ledger.first(at, 0)], "rows": [got], "bytes": [sent], "note": f"{seconds} s"}


@case("1,500 rows in plain batches of 200 at 16 kbit/s", links=("wlan0",),
      keys='profile = "overland-any"\nbatch_window = "2s"\nauth = { kind = "none" }')
def slow_plain(lab):
    return crawling(lab, 16_000, 1500, 230, 800)


@case("the same, compressed", links=("wlan0",), keys='batch_window = "2s"')
def slow_gzip(lab):
    return crawling(lab, 16_000, 1500, 60, 1500)


@case("600 rows in plain batches of 200 at 4 kbit/s with a round trip of 2 s", links=("wlan0",),
      keys='profile = "overland-any"\nbatch_window = "2s"\nauth = { kind = "none" }')
def slower_plain(lab):
    lab.wires["wlan0"].delay = 1
    return crawling(lab, 4000, 600, 240, 150)


@case("a resolver that drops AAAA, then another link", short=True)
def no_aaaa(lab):
    lab.resolver.mode = "drops-aaaa"
    at, woken = lab.connect("wlan0"), lab.status().get("wakeups", 0)
    time.sleep(10)
    woken = lab.status().get("wakeups", 0) - woken
    first = lab.ledger.first(at, 120)
    time.sleep(2)
    lab.disconnect("wlan0")
    again = lab.ledger.first(lab.connect("wwan0"), 60)
    return within([first], 20) and within([again], 6), {
        "first": [first, again], "note": f"{woken} wake-ups in the first 10 s"}


def far(lab):
    lab.wires["wlan0"].delay = 3
    at = lab.connect("wlan0")
    first = lab.ledger.first(at, 180)
    time.sleep(max(0.0, at + 120 - time.monotonic()))
    return within([first], 90), {"first": [first], "rows": [lab.ledger.rows(at)]}


@case("a round trip of 6 s, HTTP", links=("wlan0",))
def far_http(lab):
    return far(lab)


@case("a round trip of 6 s, HTTPS", scheme="https", links=("wlan0",))
def far_https(lab):
    return far(lab)


@case("a round trip of 6 s, MQTT", scheme="mqtt", links=("wlan0",))
def far_mqtt(lab):
    return far(lab)


def forgetful(lab):
    """After two batches that were late it is known."""
    lab.wires["wlan0"].forgets = 25
    at = lab.connect("wlan0")
    time.sleep(240)
    times = [at for at, _, count in lab.ledger.entries if count]
    gaps = [round(b - a, 1) for a, b in zip(times, times[1:])]
    late = [gap for gap in gaps[2:] if gap > 40]
    return len(times) >= 5 and not late, {
        "rows": [lab.ledger.rows(at)], "bytes": [lab.sent()[0]], "note": f"seconds between acceptances {gaps}"}


@case("NAT that forgets after 25 s, a batch each 30 s, HTTP", keys='batch_window = "30s"', links=("wlan0",))
def nat_http(lab):
    return forgetful(lab)


@case("NAT that forgets after 25 s, a batch each 30 s, HTTPS", scheme="https", keys='batch_window = "30s"', links=("wlan0",))
def nat_https(lab):
    return forgetful(lab)


@case("NAT that forgets after 25 s, MQTT", scheme="mqtt", keys='batch_window = "30s"\nkeepalive = "1m"', links=("wlan0",))
def nat_mqtt(lab):
    return forgetful(lab)


def portal(lab, status, headers):
    lab.http.answer = lambda client: (status, headers, 0) if client.startswith("10.1.") else (200, {}, 0)
    lab.connect("wlan0")
    time.sleep(25)
    lab.disconnect("wlan0")
    firsts = [lab.ledger.first(lab.connect("wwan0"), 60)]
    return within(firsts, SOON), {"first": firsts}


@case("away from a captive portal that answers 403", short=True)
def portal_403(lab):
    return portal(lab, 403, {})


@case("away from a captive portal that answers 302", short=True)
def portal_302(lab):
    return portal(lab, 302, {"Location": "http://portal.lab/login"})


@case("a captive portal (403) that lets everything through after 75 s", links=("wlan0",))
def portal_opens(lab):
    lab.http.answer = lambda client: (403, {}, 0)
    lab.connect("wlan0")
    time.sleep(75)
    lab.http.answer = lambda client: (200, {}, 0)
    firsts = [lab.ledger.first(time.monotonic(), 100)]
    return within(firsts, 75), {"first": firsts}


@case("1,000 rows after an outage of a minute", links=("wlan0",), keys='batch_window = "60s"')
def outage(lab):
    # Formed and failed, as after an outage that is longer.
    lab.drive(1000)
    time.sleep(60)
    at = lab.connect("wlan0")
    firsts = [lab.ledger.first(at, 60)]
    time.sleep(max(0.0, at + 15 - time.monotonic()))
    rows = lab.ledger.rows(at)
    return within(firsts, SOON) and rows >= 1000, {"first": firsts, "rows": [rows], "note": "in 15 s"}


@case("a server that answers 503 behind a link that flaps for a minute")
def unavailable(lab):
    settle(lab)
    lab.http.answer = lambda client: (503, {}, 0)
    time.sleep(3)
    before = len(lab.ledger.requests)
    for _ in range(10):
        lab.disconnect("wlan0")
        time.sleep(1)
        lab.connect("wlan0")
        time.sleep(5)
    requests = len(lab.ledger.requests) - before
    return requests <= 8, {"note": f"{requests} requests in a minute"}


@case("30 % of all packets are lost", links=("wlan0",))
def lossy(lab):
    lab.wires["wlan0"].loss = 0.3
    at = lab.connect("wlan0")
    time.sleep(120)
    rows = lab.ledger.rows(at)
    return rows >= 60, {"first": [lab.ledger.first(at, 0)], "rows": [rows], "bytes": [lab.sent()[0]]}


@case("a black hole for packets of more than 900 bytes", links=("wlan0",), keys='batch_window = "5s"\ncompress = "none"')
def black_hole(lab):
    wire = lab.wires["wlan0"]
    settle(lab, least=0)
    lab.drive(300)
    wire.largest = 900
    at = time.monotonic()
    time.sleep(230)
    rows = lab.ledger.rows(at)
    return rows > 0, {"first": [lab.ledger.first(at, 0)], "rows": [rows], "note": "; ".join(problems(lab))}


def problems(lab):
    return [endpoint.get("problem") or "-" for endpoint in lab.status().get("endpoints", [])]


@case("the doctor names the layer", scheme="https", links=("wlan0",), short=True)
def doctor(lab):
    said = {}
    said["no route"] = lab.doctor()
    lab.connect("wlan0")
    lab.resolver.mode = "silent"
    said["dns"] = lab.doctor()
    lab.resolver.mode = "answers"
    lab.wires["wlan0"].drops = (TCP,)
    said["connect"] = lab.doctor()
    lab.wires["wlan0"].drops = ()
    lab.wires["wlan0"].largest = 200
    said["tls"] = lab.doctor()
    lab.wires["wlan0"].largest = None
    lab.https.answer = lambda client: None
    said["answer"] = lab.doctor()
    lab.https.answer = lambda client: (204, {}, 0)
    lab.wires["wlan0"].longest_sent = 1000
    said["request"] = lab.doctor()
    lab.wires["wlan0"].longest_sent = None
    said["-"] = lab.doctor()
    good = all(layer == wanted for wanted, (layer, _) in said.items())
    return good, {"note": json.dumps(said, ensure_ascii=False)}


def measure(name, program):
    """In namespaces of its own."""
    words, scheme, keys, _, links, starts, function = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        lab = vehicle.Lab(folder, program, scheme, keys, links)
        try:
            if starts:
                lab.start()
            good, figures = function(lab)
            if lab.ledger.doubled or lab.ledger.disordered:
                good = False
                figures["note"] = f"{figures.get('note', '')} {lab.ledger.doubled} rows doubled, {lab.ledger.disordered} out of order"
        except Exception as error:
            good, figures = False, {"note": f"{error!r}: {problems(lab) if lab.daemon else ''}"}
        finally:
            lab.stop()
        if not good:
            log = pathlib.Path(folder) / f"{pathlib.Path(program).name}.log"
            print(log.read_text(errors="replace")[-4000:] if log.exists() else "no log", file=sys.stderr)
    print(json.dumps({"name": name, "good": good, "words": words, **figures}))


def begin(name, program):
    with tempfile.TemporaryDirectory() as folder:
        command = [*vehicle.wrapped(folder), sys.executable, "-m", "lab.tools.networks", "--inside", "--program", program, name]
        out = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = out.stdout.strip().splitlines()
    result = json.loads(lines[-1]) if lines else {"name": name, "good": False, "words": CASES[name][0], "note": "ended early"}
    result["log"] = out.stderr
    return result


def seconds(firsts):
    return ", ".join("never" if first is None else f"{first:.1f}" for first in firsts)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", default=str(proof.build_path() / "waypost"))
    options.add_argument("--all", action="store_true")
    options.add_argument("--jobs", type=int, default=6)
    options.add_argument("--logs", help="folder for what the daemon said in cases that fail")
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("cases", nargs="*")
    options = options.parse_args()
    if options.inside:
        return measure(options.cases[0], options.program)
    names = options.cases or [name for name, entry in CASES.items() if options.all or entry[3]]
    for name in names:
        if name not in CASES:
            sys.exit(f"networks: there is no case {name}; there are {', '.join(CASES)}")
    results = {}
    # They wait, nearly all of the time.
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda name: begin(name, options.program), names):
            results[result["name"]] = result
            firsts = seconds(result.get("first", []))
            parts = [f"{'ok   ' if result['good'] else 'FAIL '} {result['name']}: {result['words']}"]
            parts += [f"first accepted after {firsts} s"] if firsts else []
            parts += [result["note"]] if result.get("note") else []
            print("; ".join(parts), flush=True)
            if options.logs and not result["good"]:
                pathlib.Path(options.logs, f"{result['name']}.log").write_text(result["log"])
    print("\n| case | seconds to the first accepted row | rows | bytes sent |\n| --- | --- | --- | --- |")
    for name, result in results.items():
        rows, sizes = (", ".join(map(str, result.get(key, []))) for key in ("rows", "bytes"))
        print(f"| {name} | {seconds(result.get('first', []))} | {rows} | {sizes} |")
    sys.exit(not all(result["good"] for result in results.values()))


if __name__ == "__main__":
    main()
