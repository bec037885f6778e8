"""Servers that fail over rows, over compressed bodies, or take too long: what others wait for, and what it costs."""

import itertools
import json
import math
import time

from . import drive
from .delivery_cases import case
from .server import Answer


def poisoned(request, numbers):
    return any(drive.number_of(time_ms) in numbers for _, time_ms in request.rows)


def others_arrive(it, seconds, answer, keys='batch_window = "2s"'):
    """Row 40 of one a second is answered so for `seconds`: all others arrive meanwhile, and it is kept."""
    server = it.server(script=lambda request: answer(request) if poisoned(request, {40}) else Answer())
    it.feed(rate=2)
    it.start([("main", server.url, keys)])
    it.until("a row is tried alone", seconds, lambda: (it.status("main").get("suspects") or 0) == 1)
    it.note(found_after_s=round(time.monotonic() - it.began))
    it.until("nothing else waits", 60, lambda: it.status("main")["waiting"] <= 12)
    status = it.status("main")
    it.require(status["quarantine_depth"] == 0, "it is in quarantine without proof")
    it.require("alone" in (status.get("problem") or ""), f"the problem: {status.get('problem')}")
    it.require(any("alone" in line for line in it.log_lines()), "the log does not say that a row fails alone")
    server.script = lambda request: Answer()
    it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})  # it is tried at once then
    it.finish()
    # A server that answers too late has stored the rows.
    it.judge(explained=1000, but=("inversions", "inversions of time"))


@case("20a-row-fails-502", seconds=150)
def row_fails_502(it):
    """502 to each batch with one row, an HTML page beside it: all others arrive, and that row is kept and tried last."""
    others_arrive(it, 240, lambda request: Answer(502, body=b"<html>bad gateway</html>"))


@case("20b-row-fails-anyhow", seconds=150)
def row_fails_anyhow(it):
    """Another answer each time: 504, a body or a head that is cut, a success that confirms nothing, 413 with Retry-After."""
    kinds = [Answer(504), Answer(413, retry_after=1), Answer(503), Answer(body=b"x" * 40, takes=lambda rows: [], cut=55),
             Answer(body=b"[1,2", takes=lambda rows: []), Answer(500)]
    turn = []

    def answer(request):
        turn.append(1)
        return kinds[len(turn) % len(kinds)]
    others_arrive(it, 240, answer, keys='batch_window = "2s"\nprofile = "waypost"')


@case("20c-row-times-out", seconds=200)
def row_times_out(it):
    """No answer in time to each batch with one row: all others arrive; the problem names timeout and batch_size."""
    others_arrive(it, 300, lambda request: Answer(delay=6), keys='batch_window = "2s"\ntimeout = "3s"')
    it.require(any("timeout" in line and "batch_size" in line for line in it.log_lines()), "the log names no setting")


@case("20d-row-refused", seconds=150)
def row_refused(it):
    """One row gets 404, 409, 501, 301, 403 or 410, each at its own endpoint: all others arrive, and that row is kept and tried last."""
    def script(status):
        headers = [("Location", "http://127.0.0.1:9/")] if status == 301 else []
        return lambda request: Answer(status, headers) if poisoned(request, {40}) else Answer()
    statuses = (404, 409, 501, 301, 403, 410)
    servers = [it.server(f"s{status}", script(status)) for status in statuses]
    it.feed(rate=2)
    it.start([(server.name, server.url, 'batch_window = "2s"') for server in servers])
    for server in servers:
        it.until(f"{server.name}: a row is tried alone", 400, lambda: (it.status(server.name).get("suspects") or 0) == 1)
        it.note(**{f"{server.name}_after_s": round(time.monotonic() - it.began)})
    for server in servers:
        it.until(f"{server.name}: nothing else waits", 60, lambda: it.status(server.name)["waiting"] <= 12)
        status = it.status(server.name)
        it.require(status["state"] == "active", f"{server.name} is {status['state']}")
        it.require(status["quarantine_depth"] == 0, f"{server.name}: in quarantine without proof")
        it.require("alone" in (status.get("problem") or ""), f"{server.name}: the problem: {status.get('problem')}")
        server.script = lambda request: Answer()
        it.order({"do": "endpoint", "action": "resume", "endpoint": server.name})
    it.finish()
    it.judge(explained=1000, but=("inversions", "inversions of time"))


@case("20e-everything-refused", seconds=60)
def everything_refused(it):
    """404 and 403 to everything, after some were accepted: all rows are kept, at few requests; then all arrive within two minutes."""
    servers = [it.server("missing"), it.server("forbidden")]
    it.feed(rate=2)
    it.start([(server.name, server.url, 'batch_window = "2s"') for server in servers])
    it.until("rows are taken", 20, lambda: all(it.counts(server.name)["records"] > 0 for server in servers))
    before = [len(server.requests) for server in servers]
    servers[0].script, servers[1].script = (lambda request: Answer(404)), (lambda request: Answer(403))
    it.wait(40)
    for server, count in zip(servers, before):
        status = it.status(server.name)
        it.note(**{f"{server.name}_requests_in_40_s": len(server.requests) - count})
        it.require(len(server.requests) - count <= 12, f"{server.name}: {len(server.requests) - count} requests")
        it.require(status["quarantine_depth"] == 0 and status["waiting"] >= 60, f"{server.name}: {status['waiting']} wait")
        server.script = lambda request: Answer()
    it.until("all has arrived", 120, lambda: all(it.status(server.name)["waiting"] <= 8 for server in servers))
    it.finish()
    it.judge(but=("inversions", "inversions of time"))


@case("20f-burst-400", seconds=60, is_short=True)
def burst_400(it):
    """400, or 404, to everything for 4 and for 12 s: rows arrive again within as much and some seconds; none is in quarantine."""
    servers = [it.server(name) for name in ("four", "twelve", "missing")]
    it.feed(rate=2)
    it.start([(server.name, server.url, 'batch_window = "2s"') for server in servers])
    it.until("rows are taken", 20, lambda: all(it.counts(server.name)["records"] > 0 for server in servers))
    began = time.monotonic()
    for server, seconds, status in zip(servers, (4, 12, 12), (400, 400, 404)):
        server.script = lambda request, seconds=seconds, status=status: Answer(
            status if time.monotonic() < began + seconds else 200)
    for server, seconds in zip(servers, (4, 12, 12)):
        it.until(f"{server.name}: rows arrive again", 90, lambda: time.monotonic() > began + seconds and any(
            request.at > began + seconds for request in server.requests) and it.status(server.name)["waiting"] <= 8)
        after = min(request.at for request in server.requests if request.at > began + seconds) - began
        it.note(**{f"{server.name}_again_after_s": round(after, 1)})
        it.require(after <= 3 * seconds + 15, f"{server.name}: asked again after {after:.0f} s")
        it.require(it.status(server.name)["quarantine_depth"] == 0, f"{server.name}: rows are in quarantine")
    it.finish()
    it.judge(but=("inversions", "inversions of time"))


@case("20g-413-at-random", seconds=120)
def refuses_at_random(it):
    """413 to half of the requests for 90 s, as by a proxy of which one half has a wrong limit: none is in quarantine, all arrive."""
    turns = itertools.cycle("110100101100")
    server = it.server("main", lambda request: Answer(413 if next(turns) == "1" else 200))
    it.feed(rate=2)
    it.start([(server.name, server.url, 'batch_window = "1s"\nbatch_size = 20')])
    it.wait(90)
    status = it.status(server.name)
    it.note(requests=len(server.requests), waiting=status["waiting"], suspects=status.get("suspects"))
    it.require(status["quarantine_depth"] == 0, f"{status['quarantine_depth']} are in quarantine")
    it.require("every record" not in (status.get("problem") or ""), f"the problem: {status.get('problem')}")
    server.script = lambda request: Answer()
    it.order({"do": "endpoint", "action": "resume", "endpoint": server.name})
    it.until("all has arrived", 120, lambda: it.status(server.name)["waiting"] <= 8)
    it.finish()
    it.judge(but=("inversions", "inversions of time"))


@case("20h-answer-byte-by-byte", seconds=60)
def byte_by_byte(it):
    """An answer of which a byte comes each second: it ends with the timeout, the problem says why, and the next one counts."""
    server = it.server("main", lambda request: Answer(body=b" " * 600, takes=lambda rows: [], drip=1))
    it.feed(rate=2)
    it.start([(server.name, server.url, 'batch_window = "1s"\ntimeout = "3s"')])
    it.until("the problem says why", 30, lambda: "did not finish its answer" in (it.status(server.name).get("problem") or ""))
    it.wait(15)
    lasted = [round(request.ended - request.at, 1) for request in server.requests if request.ended]
    it.note(requests=len(server.requests), lasted_s=lasted)
    it.require(lasted and max(lasted) <= 6, f"requests lasted {lasted} s")
    server.script = lambda request: Answer()
    it.until("all has arrived", 60, lambda: it.status(server.name)["waiting"] <= 8)
    it.finish()
    it.judge()


def plain_only(it, status, most=16):
    server = it.server()
    compressed = []

    def answered(connection, head, body, life, whole=server.answered):
        server.is_compressed = head.get("content-encoding") == "gzip"
        compressed.append(server.is_compressed)
        return whole(connection, head, body, life)
    server.answered = answered
    refusal = Answer(status) if status else Answer(delay=8, takes=lambda rows: [])
    server.script = lambda request: refusal if server.is_compressed else Answer()
    it.feed(rate=400, count=900)
    it.start([("main", server.url, 'batch_size = 100\nbatch_window = "5s"\ntimeout = "3s"')])
    it.until("all is stored", 180, lambda: it.counts()["records"] >= 895)
    it.note(requests=len(server.requests), compressed=sum(compressed))
    it.require(len(server.requests) <= most, f"{len(server.requests)} requests for nine batches")
    it.require(sum(compressed) <= 6, f"{sum(compressed)} compressed bodies")
    it.require(any("compressed bodies" in line for line in it.log_lines()), "the log does not say that compression is off")
    it.finish()
    it.judge()


@case("21a-gzip-400", seconds=20, is_short=True)
def gzip_400(it):
    """400 to compressed bodies: a batch goes out plain before it is taken apart, and compression ends with the second one."""
    plain_only(it, 400)


@case("21b-gzip-500", seconds=100)
def gzip_500(it):
    """500 to compressed bodies: the rows arrive, and compression ends with the second batch."""
    plain_only(it, 500)


@case("21c-gzip-hang", seconds=100)
def gzip_hang(it):
    """No answer at all to compressed bodies: the rows arrive, and compression ends with the second batch."""
    plain_only(it, None)


@case("22-slow-server", seconds=120)
def slow_server(it):
    """0.1 s for each row and a timeout of 3 s, with batches of 100: they shrink until they are answered in time."""
    server = it.server(script=lambda request: Answer(delay=0.1 * len(request.rows)))
    it.feed(rate=50, count=300)
    it.start([("main", server.url, 'batch_size = 100\nbatch_window = "1s"\ntimeout = "3s"')])
    it.until("all is stored", 240, lambda: it.counts()["records"] >= 295)
    it.require(any("timeout" in line and "batch_size" in line for line in it.log_lines()), "the log names no setting")
    it.note(requests=len(server.requests))
    it.finish()
    it.judge(explained=1000, but=("inversions", "inversions of time"))


@case("23-reloads-each-second", seconds=25, is_short=True)
def reloads_each_second(it):
    """A reload each second with another credential, while each answer takes 3 s: no upload is cancelled."""
    server = it.server(script=lambda request: Answer(delay=3))
    it.feed(rate=10)
    tokens = [it.folder / "one", it.folder / "two"]
    for token in tokens:
        token.write_text("secret")
        token.chmod(0o600)
    it.start([("main", server.url, f'batch_window = "1s"\nauth = {{ kind = "bearer", token = "file:{tokens[0]}" }}')])
    for turn in range(15):
        text = it.daemon.config.read_text()
        old, new = tokens[turn % 2], tokens[(turn + 1) % 2]
        it.daemon.config.write_text(text.replace(f"file:{old}", f"file:{new}"))
        it.order({"do": "reload"})
        it.wait(1)
    it.require(it.counts()["batches stored"] >= 3, f"{it.counts()['batches stored']} batches in 15 s")
    it.require(it.status("main")["batches_repeated"] == 0, "an upload was cancelled")
    it.finish()
    it.judge()


@case("24-large-reload", seconds=60)
def large_reload(it):
    """A reload of 1,000 trackables, 20 endpoints and 8 MiB of geofences is read beside the loop."""
    servers = [it.server(f"e{number}") for number in range(20)]
    it.feed(rate=0.2, count=4)
    angles = [step / 450 * math.pi for step in range(900)]
    corners = [[round(10 + 0.1 * math.cos(angle), 7), round(50 + 0.1 * math.sin(angle), 7)] for angle in angles]
    fences = [{"type": "Feature", "properties": {"id": f"f{number}"}, "geometry": {
        "type": "Polygon", "coordinates": [[*corners, corners[0]]]}} for number in range(360)]
    (it.folder / "fences.json").write_text(json.dumps({"type": "FeatureCollection", "features": fences}))
    more = f'[geofences]\nfile = "{it.folder}/fences.json"\n' + "".join(
        f'[[trackable]]\nid = "t{number}"\n' for number in range(1000))
    it.note(fences_mib=round((it.folder / "fences.json").stat().st_size / 2**20, 1))
    it.start([(server.name, server.url, 'batch_window = "5s"') for server in servers], more=more)
    for turn in range(5):
        path = it.daemon.config
        path.write_text(path.read_text() + f"# {turn}\n")
        reply = it.order({"do": "reload"})
        it.require(reply.get("ok"), f"reload: {reply}")
        it.wait(2)
    it.finish(within=180)
    it.note(peak_with_fences_mib=it.notes.pop("peak_mib", None))
    it.judge()
