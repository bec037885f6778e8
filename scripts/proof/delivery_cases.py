"""What may happen to the delivery, case by case: numbers are those of the findings."""

import gzip
import random
import signal
import time

from . import card, drive
from .daemon import Feeder, Shim
from .ledger import PREVIEW
from .server import Answer, TLSServer, in_turn, silent_port

CASES = {}


def case(name, seconds, needs_root=False, is_short=False):
    """- seconds: about how long it takes."""
    def register(body):
        CASES[name] = body
        body.seconds, body.needs_root, body.is_short = seconds, needs_root, is_short
        return body
    return register


@case("1a-full-disk", seconds=75, needs_root=True)
def full_disk(it):
    """A disk that is full for 40 s, default windows, and then has space again: nothing doubled, nothing out of order."""
    it.on_a_small_disk()
    server = it.server(script=lambda request: Answer(delay=0.3))
    it.feed(rate=20)
    it.start([("main", server.url, "")], outbox='commit_window = "10s"')
    it.wait(12)
    with card.filled(it.queue):
        it.wait(38)
        it.require(it.status()["queue"].get("disk_error"), "the full disk was not reported")
        it.wait(2)
    it.wait(15)
    it.finish()
    it.judge()


@case("1b-failed-flushes", seconds=170)
def failed_flushes(it):
    """Flushes fail for 95 s, slow answers are under way when they work again, and then comes one 503: no row is gone."""
    server = it.server()
    it.feed(rate=17)
    it.start([("main", server.url, "")], outbox='commit_window = "10s"')
    it.wait(8)
    it.shim.strike_disk(Shim.EIO_FLUSHES)
    it.wait(85)
    it.require(it.status()["queue"].get("disk_error"), "the failed flushes were not reported")
    before = len(server.requests)
    # The disk is asked again at some time in the next half minute or more.
    server.script = in_turn(Answer(delay=25), Answer(delay=25), Answer(503))
    it.until("a slow answer is under way", 45, lambda: len(server.requests) > before)
    it.shim.strike_disk(Shim.HEALTHY)
    it.until("the slow answers and the 503", 90, lambda: len(server.requests) > before + 2)
    it.finish(within=120)
    it.judge()


@case("1c-bind-in-flight", seconds=10, is_short=True)
def bind_in_flight(it):
    """`endpoint bind` while a slow answer is under way, and a 503 after it: one request at a time, no row is gone."""
    server = it.server()
    it.feed(rate=20, count=160)
    profile = '[profile.bound]\nextends = "waypost"\n[profile.bound.bind]\nurl = "${base_url}/bind"\n'
    it.start([("main", server.url, 'profile = "bound"\nbatch_window = "1s"\nbatch_size = 20')], more=profile)
    for _ in range(2):
        server.script = in_turn(Answer(delay=3), Answer(503))
        before = len(server.requests)
        it.until("a slow answer is under way", 20, lambda: any(each.rows for each in server.requests[before:]))
        bound = it.order_aside({"do": "endpoint", "action": "bind", "endpoint": "main"})()
        it.require(bound.get("ok"), f"bind: {bound}")
    it.finish()
    it.require(sum(request.path == "/bind" for request in server.requests) == 2, "the server got another number of binds than 2")
    it.judge()


@case("2-optional-dead", seconds=40)
def optional_dead(it):
    """Two optional endpoints, one silent and one that refuses connections, and max_records = 500: the required one misses nothing."""
    listener, silent = silent_port()
    it.stack.callback(listener.close)
    server = it.server("needed")
    it.feed(rate=80, count=2405)
    keys = 'batch_window = "1s"\ntimeout = "5s"\n'
    it.start([("needed", server.url, keys), ("silent", f"http://127.0.0.1:{silent}", keys + "required = false"),
              ("refusing", "http://127.0.0.1:9", keys + "required = false")],
             outbox='commit_window = "500ms"\nmax_records = 500\non_full = "drop_newest"')
    it.until("all is fed", 60, lambda: it.feeder.is_done)
    it.wait(2)
    status = it.status()
    it.require(status["queue"]["dropped_newest"] == 0, f"{status['queue']['dropped_newest']} fixes refused")
    it.require(status["queue"]["queue_depth"] <= 600, f"{status['queue']['queue_depth']} rows in a queue of 500")
    for endpoint in status["endpoints"]:
        if endpoint["name"] != "needed":
            offered = endpoint["waiting"] + endpoint["evicted"]
            it.note(**{f"{endpoint['name']}_waiting": endpoint["waiting"], f"{endpoint['name']}_evicted": endpoint["evicted"]})
            it.require(offered == 2405, f"{endpoint['name']}: waiting + evicted = {offered} of 2,405")
            it.require(endpoint["evicted"] > 0, f"{endpoint['name']}: nothing gave way")
    it.finish(drained=["needed"])
    it.judge()


@case("3-disk-fails-as-it-forms", seconds=70)
def disk_fails_as_it_forms(it):
    """The commit that forms a batch fails, and each one for 60 s: uploads go on from memory."""
    server = it.server()
    it.feed(rate=10)
    it.start([("main", server.url, "batch_size = 50")], outbox='commit_window = "10s"')
    it.until("two batches", 30, lambda: it.counts()["batches stored"] >= 2)
    # The next commit is the one that forms the third.
    it.shim.strike_disk(Shim.EIO_WRITES)
    began = time.monotonic()
    it.wait(60)
    it.require(it.status()["queue"].get("disk_error"), "the disk was not reported")
    it.shim.strike_disk(Shim.HEALTHY)
    at = [began] + [request.at for request in server.requests if request.at > began] + [time.monotonic()]
    gap = max(after - before for before, after in zip(at, at[1:]))
    it.note(longest_gap_s=round(gap, 1))
    # 50 rows take 5 s to come.
    it.require(gap < 12, f"{gap:.1f} s without an upload while the disk failed")
    it.finish(within=120)
    it.judge()


def busy(rows, least_bytes=0):
    """An answer that does not take these rows yet."""
    entries = ",".join('{"seq":%d,"code":"busy","reason":"%s"}' % (seq, "x" * 60) for seq, _ in rows)
    return b'{"rejected":[' + entries.encode() + b"]" + b" " * max(0, least_bytes - len(entries)) + b"}"


@case("4-unclear-answers", seconds=15, is_short=True)
def unclear_answers(it):
    """2xx with 692 of 693 rows busy in 71 kB, with a body cut short, and with one that never ends: no row is deleted by them."""
    server = it.server()
    it.feed(rate=700, count=5 * 693)
    size = []

    def one_taken(request):
        body = busy(request.rows[1:])
        size.append((len(request.rows), len(body)))
        return Answer(body=body, takes=lambda rows: rows[:1])

    def none_taken_cut(request):
        return Answer(body=busy(request.rows), takes=lambda rows: [], cut=500)

    def none_taken_long(request):
        return Answer(body=busy(request.rows, least_bytes=(64 << 10) + 512 * len(request.rows) + 4096), takes=lambda rows: [])
    left = [one_taken, none_taken_cut, none_taken_long, none_taken_cut]
    server.script = lambda request: left.pop(0)(request) if left and len(request.rows) >= 600 else Answer()
    it.start([("main", server.url, 'profile = "waypost-compact"\nbatch_size = 693\nbatch_window = "2s"')])
    it.until("the odd answers were given", 40, lambda: not left)
    it.require(size[0][0] == 693 and size[0][1] > 65_536, f"the first answer was about {size[0][0]} rows in {size[0][1]} bytes")
    it.finish()
    it.judge(but=("inversions", "inversions of time"))  # one row of a batch is taken before the others


class SpoofedFeeder(Feeder):
    """One fix a second, in step with the host's clock, until a false signal dates them `days` later."""

    days, was_spoofed = 0, False

    def epoch(self, number):
        if self.days or self.was_spoofed:
            self.was_spoofed = True
            return drive.epoch(number, self.days)
        return super().epoch(number)


def spoofed(it, endpoint_keys, days, seconds):
    """- Returns: the server; it has refused everything so far when there are no keys."""
    it.ledger.was_fed = lambda number: True
    server = it.server()
    feeder = it.feed(rate=1, kind=SpoofedFeeder)
    it.shim = Shim(it.folder, it.queue)
    it.shim.step_clock(int(drive.START_S - time.time()))
    keys = endpoint_keys or 'batch_window = "1s"'
    if not endpoint_keys:
        server.script = lambda request: Answer(500)
    it.start([("main", server.url, keys)], environment={"WAYPOST_SHIM_SYNCHRONISED": "1"})
    it.require(it.status()["queue"]["clock_untrusted"] == 0, "the host's clock does not count as synchronised")
    it.wait(15)
    it.measured()
    # Half of the true rows are of a process before this one.
    it.require(it.daemon.end() == 0, "the daemon did not end well")
    it.run()
    it.wait(15)
    true_rows = sum(len(life.fed) for life in it.ledger.lives)
    feeder.days = days
    it.wait(seconds)
    feeder.days = 0
    it.note(true_rows=true_rows)
    return server


@case("5a-date-35-days-on", seconds=115)
def date_35_days_on(it):
    """The receiver is 35 days ahead for 80 s while 30 true rows wait: none of them expires."""
    spoofed(it, "", days=35, seconds=80)
    status = it.status()
    it.require(status["queue"]["expired"] == 0, f"{status['queue']['expired']} rows expired")
    it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})
    it.finish()
    it.judge(but=("inversions of time",))


@case("5b-date-2-days-on", seconds=135)
def date_2_days_on(it):
    """max_age = "5m", and the receiver is two days ahead for 75 s: what comes then arrives as before."""
    server = spoofed(it, 'batch_window = "1s"\nmax_age = "5m"', days=2, seconds=75)
    it.wait(20)  # the tracker may want to see the date again and again before it believes that it went back
    since = time.monotonic()
    it.until("uploads go on", 20, lambda: sum(len(each.rows) for each in server.requests if each.at > since) >= 5)
    it.require(it.status("main")["expired"] == 0, f"{it.status('main')['expired']} rows expired")
    it.finish()
    it.judge(but=("inversions of time",))


@case("6-413-to-everything", seconds=15, is_short=True)
def too_large_always(it):
    """413 to everything: the quarantine stays empty, the endpoint pauses, and what is counted stands in `status --json`."""
    server = it.server()
    it.feed(rate=100, count=400)
    it.start()
    it.until("a batch is taken", 20, lambda: it.counts()["records"] > 0)
    server.script = lambda request: Answer(413)
    before = len(server.requests)
    it.until("the endpoint pauses", 60, lambda: it.status("main")["state"] == "paused")
    requests = len(server.requests) - before
    it.until("all is fed", 20, lambda: it.feeder.is_done)
    it.wait(8)
    status = it.daemon.status()["endpoints"][0]
    it.note(requests_until_paused=requests, quarantine=status["quarantine_depth"])
    it.require(status["quarantine_depth"] <= 1, f"{status['quarantine_depth']} rows in quarantine")
    it.require(requests <= 30, f"{requests} requests until it paused")
    # A pause is short at first, as waits after failures are.
    it.require(len(server.requests) - before <= requests + 5, f"{len(server.requests) - before - requests} requests in the pause")
    it.require({"quarantined", "quarantine_overflow"} <= status.keys(), "no counter of what left the quarantine")
    server.script = lambda request: Answer()
    it.order({"do": "quarantine", "action": "retry", "all": True})
    it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})
    it.finish()
    it.judge()


@case("7-fresh-head", seconds=30, is_short=True)
def fresh_head(it):
    """The newest row goes ahead while others wait, and its answers get lost: each Idempotency-Key names one body."""
    draw = random.Random(7)

    def script(request):
        kind = draw.random()
        if PREVIEW in request.batch or kind < 0.3:
            return Answer(body=b"x" * 40, cut=20, delay=0.2) if kind < 0.5 else Answer(503)
        return Answer(delay=0.4)
    server = it.server(script=script)
    it.feed(rate=60)
    it.start([("main", server.url, 'fresh_head = true\nbatch_size = 20\nbatch_window = "1s"')])
    it.wait(25)
    previews = it.status("main")["preview_sent"]
    it.note(previews=previews)
    it.require(previews >= 3, f"{previews} previews")
    it.finish()
    it.judge(explained=10_000)


@case("8a-retry-after", seconds=35)
def retry_after(it):
    """In a pause a server asks for 30 s; resume after 6 s, a flush and a reload: no request before its time."""
    server = it.server(script=in_turn(Answer(405), Answer(503, retry_after=30)))
    it.feed(rate=5)
    it.start()
    it.until("the endpoint pauses", 20, lambda: it.status("main")["state"] == "paused")
    it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})
    it.until("the server has asked for time", 20, lambda: len(server.requests) > 1 and server.requests[1].ended)
    asked = server.requests[1].ended
    it.wait(6)
    reply = it.daemon.ask("endpoint", "resume", "main")
    it.note(resume_says=reply.strip())
    it.require("server" in reply, f"resume does not say that the server asked for a pause: {reply.strip()}")
    it.order_aside({"do": "flush"})
    it.daemon.process.send_signal(signal.SIGHUP)
    it.until("the next request", 40, lambda: len(server.requests) > 2)
    it.note(next_request_s=round(server.requests[2].at - asked, 1))
    it.require(server.requests[2].at - asked >= 29.9, f"a request after {server.requests[2].at - asked:.1f} s")
    it.finish()
    it.judge()


@case("8b-probe-of-a-pause", seconds=30, is_short=True)
def probe_of_a_pause(it):
    """Paused by the fifth 409, which asks for an hour: neither the probe after 15 minutes nor resume comes before."""
    server = it.server(script=in_turn(*[Answer(409)] * 4, then=Answer(409, retry_after=3600)))
    it.feed(rate=5)
    it.start()
    it.until("the endpoint pauses", 60, lambda: it.status("main")["state"] == "paused")
    it.require(any("asked to wait another 3600 s" in line for line in it.log_lines()), "the log does not say until when")
    it.wait(1)
    it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})
    left = it.status("main").get("next_attempt_s")
    it.note(next_after_resume_s=left)
    it.require(left is not None and left > 3500, f"next request {left} s after resume")
    it.wait(5)
    it.require(len(server.requests) == 5, f"{len(server.requests)} requests of 5")
    it.feeder.stop()
    it.end()
    it.judge(but=("lost", "lost beyond the window"))  # they wait


PAGE = b"\xef\xbb\xbf \r\n<!-- portal --><!DOCTYPE HTML><html><head><title>Sign in to\n the train</title></head></html>"
# Only the status of an answer counts.
BY_STATUS = """[profile.plain]
url = "${base_url}/in"
headers = { Idempotency-Key = "${batch_id}" }
body = { outbox = "$outbox", locations = "$records" }
max_records = 100
record = { seq = "$seq", time_ms = "$time_ms" }
"""


def unread(headers, body=PAGE, cut=0):
    """A success of somebody who has stored nothing."""
    return Answer(headers=headers, body=body, cut=cut, takes=lambda rows: [])


@case("9a-web-page", seconds=30, is_short=True)
def web_page(it):
    """200 with a page of a portal, labelled JSON, compressed or cut short, and then `OK` labelled HTML: no row is gone."""
    server = it.server()
    it.feed(rate=10, count=200)
    pages = [unread([("Content-Type", "application/json")]), unread([], cut=20), unread([], cut=len(PAGE)),
             unread([("Content-Encoding", "gzip")], gzip.compress(PAGE))]
    server.script = in_turn(*pages, then=Answer(headers=[("Content-Type", "text/html")], body=b"OK"))
    it.start([("main", server.url, 'profile = "plain"\nbatch_window = "1s"')], more=BY_STATUS)
    it.until("the page is named", 20, lambda: any('a web page ("Sign in to the train")' in line for line in it.log_lines()))
    it.until("OK is taken for an answer", 40, lambda: it.counts()["records"] > 0)
    failed = it.status("main")["failed"]
    it.note(**{word.replace(" ", "_"): count for word, count in failed.items()})
    it.require(failed == {"web page": 1, "unclear reply": 1, "reset": 2}, f"failed: {failed}")
    it.finish()
    it.judge()


@case("9b-one-answer-too-many", seconds=20, is_short=True)
def one_answer_too_many(it):
    """A second answer, 200 or 410, comes on a kept connection, with and without TLS: it is not that to the next batch."""
    plain, secure = it.server("main"), TLSServer(it.ledger, "secure", it.folder)
    it.stack.callback(secure.stop)
    it.servers.append(secure)
    it.feed(rate=10, count=100)
    for server in it.servers:
        # After a failure all that waits goes out at once: nothing would come between two requests.
        server.script = in_turn(Answer(more=Answer(200)), Answer(503), Answer(), Answer(), Answer(more=Answer(410)), Answer(503))
    keys = 'batch_window = "1s"\n'
    it.start([("main", plain.url, keys), ("secure", secure.url, f'{keys}[endpoint.tls]\nca = "file:{secure.certificate}"')])
    for server in it.servers:
        it.until(f"seven requests to {server.name}", 30, lambda: len(server.requests) > 6)
        it.require(it.status(server.name)["state"] == "active", f"{server.name} is {it.status(server.name)['state']}")
    unasked = it.status()["unasked_answers"]
    it.require(unasked == 2, f"{unasked} unasked answers counted of 2")
    words = "main: the server sends more answers than it gets requests"
    it.until("status names it", 10, lambda: any(line.startswith(words) for line in it.status()["problems"]))
    lines = [line for line in it.log_lines() if "more answers than it gets requests" in line]
    it.require(len(lines) in (1, 2), f"{len(lines)} lines of the journal name it")
    it.finish()
    it.judge()
