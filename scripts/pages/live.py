"""The live page of waypost-collector: uploads of a real waypost, an outage, a restart, settings and commands from afar, and senders that mean
no good."""
import contextlib, http.client, json, re, signal, time

from .browser import fetch, free_port
from .relay import Relay
from .vehicle import Vehicle

# What Chromium itself says of a connection that breaks.
NETWORK = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED", "ERR_NETWORK", "ERR_SOCKET")


def check(bench):
    vehicle_through_outages(bench)
    settings_and_commands(bench)
    hostile_senders(bench)
    what_a_browser_may_ask(bench)


class Collector:
    def __init__(self, bench, *options, name="collector"):
        self.bench, self.options, self.name = bench, options, name
        self.port = free_port()
        self.output = bench.folder / f"{name}.jsonl"
        self.start()

    def start(self):
        self.process = self.bench.start(
            "waypost-collector", "--port", str(self.port), "--output", self.output, *self.options, log=self.name)
        if not self.bench.wait(lambda: self.stats() is not None):
            raise RuntimeError("the collector did not start")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def stats(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return json.loads(fetch(self.url("/stats"))[1])

    def rows(self):
        """What it has written, each row of a queue once."""
        rows = {}
        for line in self.output.read_text().splitlines():
            row = json.loads(line)
            rows[row["device"], row["outbox"], row["seq"]] = row
        return rows


class Page:
    """The live page in a browser, read as a person reads it."""

    def __init__(self, bench, url):
        self.bench, self.browser, self.url = bench, bench.browser(), url
        self.browser.open(url)

    def state(self):
        return self.browser.js("document.querySelector('#link').dataset.state")

    def becomes(self, state, seconds=10):
        return self.bench.wait(lambda: self.state() == state, seconds)

    def counters(self):
        shown = self.browser.js(
            "Object.fromEntries([...document.querySelectorAll('[data-counter]')].map(each => [each.dataset.counter, each.textContent]))")
        return {name: int(text.replace("\u202f", "")) for name, text in shown.items() if name != "bytes_each"}

    def points(self):
        """Locations on the map, of all devices."""
        return self.browser.js("[...document.querySelectorAll('#devices tr')].reduce((sum, row) => sum + Number(row.dataset.points ?? 0), 0)")

    def requests(self):
        return self.browser.js("[...document.querySelectorAll('#requests tr')].map(row => row.innerText)")

    def summary(self):
        return self.browser.text("#delay-summary")


def vehicle_through_outages(bench):
    collector, vehicle = Collector(bench), Vehicle()
    relay = Relay(collector.port)
    page = Page(bench, f"http://127.0.0.1:{relay.port}/")
    browser = page.browser
    bench.ok("the page is live before anything arrives", page.becomes("live"), browser.text("#link"))
    bench.ok("empty, it says what to do", browser.js("!document.querySelector('#empty').hidden && document.querySelector('#endpoint').textContent")
             == f'[[endpoint]]\nbase_url = "http://127.0.0.1:{relay.port}"')
    bench.ok("and it can be seen", browser.is_on_top("#empty pre"))
    shots(browser, "live-empty")

    waypost = start_waypost(bench, vehicle, relay)
    bench.need("the first location appears by itself", bench.wait(lambda: page.points() > 0 or waypost.poll() is not None, 30) and page.points() > 0)
    bench.ok("what to do is gone then", browser.js("document.querySelector('#empty').hidden"))
    bench.ok("the vehicle drives", bench.wait(lambda: "moving" in browser.text("#devices"), 60), browser.text("#devices"))
    agree(bench, page, collector, "while it drives")

    # The network goes: for the page, and for the uploads.
    known = page.points()
    relay.down()
    began = time.monotonic()
    bench.ok("a lost connection is shown", page.becomes("lost"), browser.text("#link"))
    bench.ok("and what is known stays", page.points() >= known)
    bench.ok("the outage is named", bench.wait(lambda: "Nothing since" in page.summary(), 60), page.summary())
    browser.screenshot("live-lost")
    before = len(relay.heads)
    relay.up()
    bench.ok("the page comes back by itself", page.becomes("live", 20), f"{time.monotonic() - began:.0f} s after the network went")
    bench.ok("it asks for what comes after the last event", any(
        "last-event-id: " in head.lower() or "after=" in head for head in relay.heads[before:]), relay.heads[before:][:1])
    bench.ok("the catch-up is seen", bench.wait(lambda: "then" in page.summary() and "late" in page.summary(), 60), page.summary())
    agree(bench, page, collector, "after the outage")
    shots(browser, "live")

    # The collector stands still, with its connections open.
    collector.process.send_signal(signal.SIGSTOP)
    bench.ok("silence is shown", page.becomes("silent", 15), browser.text("#link"))
    collector.process.send_signal(signal.SIGCONT)
    bench.ok("and ends", page.becomes("live", 20))

    # A new collector begins to count at zero; what was seen before is still true.
    known = page.points()
    collector.stop()
    bench.ok("an ended collector is shown", page.becomes("lost"))
    collector.start()
    bench.ok("a new collector is found", page.becomes("live", 20))
    bench.ok("tracks stay over its restart", page.points() >= known, f"{page.points()} after {known}")
    bench.ok("uploads go on", bench.wait(lambda: collector.stats()["locations"] > 5, 60))
    agree(bench, page, collector, "after the restart", whole=True)
    waypost.terminate()
    bench.equal("waypost ends well", waypost.wait(30), 0)
    agree(bench, page, collector, "at the end", whole=True)
    browser.open(page.url)
    bench.ok("a reload shows what this collector has", bench.wait(lambda: page.points() == collector.stats()["locations"]), page.points())
    # The events that come again are of the past: they say nothing of the collector's clock.
    ended = time.monotonic()
    browser.wait("document.querySelector('#devices tr td:last-child').innerText.includes('ago')")
    bench.ok("and for how long the device has been silent", bench.wait(lambda: heard(browser) >= 8, 20), browser.text("#devices"))
    browser.open(page.url)
    bench.ok("also after another reload", bench.wait(lambda: heard(browser) >= 8, 5), browser.text("#devices"))
    bench.ok("which is the time that has passed", heard(browser) <= 60 + time.monotonic() - ended, browser.text("#devices"))

    keyboard(bench, browser)
    fingers(bench, browser)
    modules(bench, browser)
    bench.equal("axe has no findings", browser.axe(), [])
    bench.equal("no request leaves the page", browser.foreign_requests(page.url), [])
    bench.equal("the console is silent", browser.console_errors(NETWORK), [])
    browser.quit()
    bench.browsers.remove(browser)


def heard(browser):
    """Seconds since the first device was heard, as the page says."""
    text = browser.js("document.querySelector('#devices tr td:last-child')?.innerText ?? ''").replace("\u00a0", " ")
    found = re.match(r"(?:(\d+) min )?(\d+) s ago", text)
    return 60 * int(found[1] or 0) + int(found[2]) if found else -1


def start_waypost(bench, vehicle, relay):
    (bench.folder / "waypost.toml").write_text(f"""
[device]
id = "van-7"
[source]
kind = "tcp"
host = "127.0.0.1"
port = {vehicle.port}
[resolution.default]
priority = "maximum"
interval = "400ms"
displacement = "2m"
[outbox]
path = "{bench.folder}/outbox.db"
commit_window = "1s"
[control]
socket = "{bench.folder}/control.sock"
[[endpoint]]
base_url = "http://127.0.0.1:{relay.port}"
batch_window = "3s"
""")
    return bench.start("waypost", "run", "--config", bench.folder / "waypost.toml", log="waypost")


def agree(bench, page, collector, when, whole=False):
    """The page shows what the collector counts. With `whole`, the map has rows of an earlier life of the collector too."""
    def same():
        stats = collector.stats()
        return {name: stats[name] for name in page.counters()} == page.counters() and page.points() == expected(stats)

    def expected(stats):
        return len(collector.rows()) if whole else stats["locations"]

    # Uploads go on while the two are read.
    agreed = bench.wait(same, 15)
    bench.ok(f"counters and map equal the collector's {when}", agreed, f"{page.counters()}, {page.points()} on the map")
    if not agreed:
        print(collector.stats(), len(collector.rows()))


def shots(browser, name):
    """Light, dark, and both on a phone."""
    for is_dark in (False, True):
        browser.dark(is_dark)
        tone = "-dark" if is_dark else ""
        browser.screenshot(f"{name}{tone}")
        browser.bench.equal(f"{name}{tone}: axe has no findings", browser.axe(), [])
        browser.size(390, 844, phone=True)
        browser.screenshot(f"{name}{tone}-phone", whole=True)
        browser.bench.equal(f"{name}{tone}: axe has no findings on a phone", browser.axe(), [])
        browser.bench.ok(f"{name}{tone}: no wider than a phone", browser.sideways() <= 0, browser.sideways())
        browser.size(1440, 900)
    browser.dark(False)


def keyboard(bench, browser):
    focus = "document.querySelector('#map canvas').focus()"
    browser.driver.execute_script(focus)
    press = "document.querySelector('#map canvas').dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true, cancelable: true}))"
    picture = "document.querySelector('#map canvas').toDataURL()"
    browser.settle()
    for key in ("+", "ArrowLeft", "ArrowUp", "-"):
        before = browser.js(picture)
        browser.driver.execute_script(press, key)
        browser.settle()
        bench.ok(f"the key {key} moves the map", browser.js(picture) != before)
    bench.ok("moved by hand, it no longer follows", not browser.js("document.querySelector('#follow').checked"))
    browser.driver.execute_script(press, "0")
    browser.settle()
    bench.ok("the key 0 shows all and follows", browser.js("document.querySelector('#follow').checked"))


def fingers(bench, browser):
    browser.size(390, 844, phone=True)
    browser.driver.execute_script("scrollTo(0, 0)")
    browser.settle()
    picture = "document.querySelector('#map canvas').toDataURL()"
    before = browser.js(picture)
    browser.touch([(200, 420)], [(200, 400)], [(200, 360)], [(200, 300)])
    bench.ok("one finger leaves the map where it is", browser.js(picture) == before)
    bench.ok("and scrolls the page", browser.wait("scrollY > 20", 2), browser.js("scrollY"))
    # A flick goes on when the finger has left; a touch in the middle of it only stops it, and is no gesture of the page.
    bench.ok("which comes to rest", browser.rests("scrollY"))
    browser.driver.execute_script("scrollTo(0, 0)")
    bench.ok("and goes back to its top", browser.wait("scrollY == 0", 2) and browser.rests("scrollY"))
    before = browser.js(picture)
    browser.touch([(150, 350), (250, 350)], [(140, 350), (260, 350)], [(100, 330), (300, 330)])
    moved = lambda: browser.js(picture) != before
    bench.ok("two fingers move and zoom it", bench.wait(moved, 2) and browser.js("scrollY") == 0, browser.js("scrollY"))
    browser.size(1440, 900)


def modules(bench, browser):
    """What is hard to see in a picture."""
    tracks = ["/live/tracks.js", "/common/projection.js", "/live/delays.js", "/common/words.js"]
    add = "const t = new m.Track(), at = (seq, more = {}) => t.add(more.outbox ?? 'a', {seq, time: seq * 1000, latitude: 1, longitude: seq / 1000, event: null, reason: null, ...more});"
    bench.equal("a row comes once, late rows find their place", browser.with_modules(tracks, f"""(() => {{ {add}
        const fresh = [at(1), at(3), at(2), at(3)]; return [fresh, [0, 1, 2].map(i => t.location(i).seq), t.points.length]; }})()"""),
        [[True, True, True, False], [1, 2, 3], 3])
    bench.equal("a gap is no travel", browser.with_modules(tracks, f"""(() => {{ {add}
        at(1); at(2, {{event: "gap", reason: "no-sky"}}); at(3); at(4, {{reason: "jump"}}); at(5); at(1, {{outbox: "b"}}); return [...t.breaks]; }})()"""), [2, 3, 5])
    bench.equal("nor is what came while the page was away too long", browser.with_modules(tracks, f"""(() => {{ {add}
        at(1); at(2); t.interrupt(); at(9); at(8); return [...t.breaks]; }})()"""), [2])
    bench.equal("a track over the antimeridian is short", browser.with_modules(tracks, """(() => { const p = new m.Points(1);
        for (const longitude of [179.9, 180, -179.9, -180, 179.8]) p.push(10, longitude); const b = p.bounds(); return b.right - b.left < 0.002; })()"""), True)
    bench.equal("a pause is longer than usual, and may last", browser.with_modules(tracks, """m.pauses([5, 10, 15, 60, 65].map(s => ({at: s * 1000})), 200000)"""),
                [{"from": 15000, "to": 60000}, {"from": 65000, "to": None}])
    bench.equal("an old log is no delay", browser.with_modules(tracks, """(() => {
        const list = [["old", 9e9, 1e9], ["fast", 9e9, 1e9], ["now", 9e9, 9e9 - 5000], ["old", 9e9 - 5000, 1e9 - 6000], ["fast", 9e9 - 5000, 1e9 - 300000]]
            .map(([device, at, newest]) => ({device, at, newest, oldest: newest - 1000, new: 1}));
        const old = m.replays(list); return [[...old.keys()], list.map(each => m.delayOf(each, old.get(each.device))?.most ?? null)]; })()"""),
        [["old", "fast"], [1000, None, 6000, 2000, None]])
    bench.equal("times in words", browser.with_modules(tracks, "[400, 59400, 60000, 599000, 3599000, 3661000, 90000000].map(m.span)"),
                ["0 s", "59 s", "1 min 00 s", "9 min 59 s", "59 min 59 s", "1 h 01 min", "25 h 00 min"])


def settings_and_commands(bench):
    """What is wanted of a device, what it reports, and its commands, each while it happens."""
    collector = Collector(bench, name="remote")
    page = Page(bench, collector.url())
    browser = page.browser

    def send(method, path, value):
        return fetch(collector.url(path), data=json.dumps(value).encode(), method=method)[0]

    def command(identifier, verb, seconds=50):
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
        return send("POST", "/commands/van-7", {"id": identifier, "do": verb, "expires": expires})

    def upload(seq):
        return send("POST", "/locations", json.loads(batch("van-7", [seq])))

    def answer(value):
        return send("POST", "/reported/van-7", value)

    def row(device="van-7"):
        rows = browser.js("[...document.querySelectorAll('#remotes tr')].map(row => row.innerText)")
        return next((each for each in rows if each.startswith(device)), "")

    def shown(what, *texts, device="van-7"):
        bench.ok(what, bench.wait(lambda: all(text in row(device) for text in texts)), row(device))

    page.becomes("live")
    bench.ok("without settings and commands there is no table of them", browser.js("document.querySelector('#remotes-section').hidden"))
    bench.equal("settings are offered", send("PUT", "/settings/van-7", {"device": "van-7", "version": 17, "set": {}}), 204)
    shown("they are shown by themselves", "version 17 wanted", "not reported yet")
    bench.ok("of one that was not heard of before", not browser.js("document.querySelector('#remotes-section').hidden"))
    send("PUT", "/reported/van-7", {"device": "van-7", "version": 17, "state": "trial", "in_force": 17,
                                    "clamped": {"tracking.heartbeat": ["1m", "10m"]}, "effective": {}})
    shown("a trial, and what was clamped", "17 on trial", "tracking.heartbeat clamped: 1m → 10m")
    bench.equal("commands are queued", [command("c-81", "locate"), command("c-82", "status")], [202, 202])
    shown("they wait", "locate: waits for a batch", "status: waits for a batch")
    upload(1)
    shown("one goes with each batch", "locate: sent, no answer yet", "status: waits for a batch")
    answer({"id": "c-81", "error": {"code": "no-fix", "message": "no fix within 60 s"}})
    shown("why it was not carried out", "locate: not done", "no-fix, no fix within 60 s")
    upload(2)
    answer({"id": "c-82", "ok": True, "result": {"health": "ok", "motion": "parked", "waiting": 0}})
    shown("what a device answers", "status: done", "health ok, motion parked, waiting 0")
    command("c-83", "flush", seconds=2)
    shown("a command that waited too long", "flush: expired before a batch came")
    script = "<img src=x onerror=\"document.title='owned'\">"
    send("PUT", "/reported/van-8", {"device": "van-8", "version": 4, "state": "rejected", "in_force": None,
                                    "rejected": {"log.level": "not allowed", script: script * 20}})
    shown("a rejection with its reasons", "4 rejected", "the file is in force", "log.level: not allowed", script, device="van-8")
    send("PUT", "/reported/van-9", {"device": "van-9", "version": 3, "state": "reverted", "in_force": 2, "rejected": {"": "no batch was accepted"}})
    shown("a way back", "3 reverted", "version 2 is in force", "no batch was accepted", device="van-9")
    bench.equal("texts of devices are no elements", browser.js("document.querySelectorAll('#remotes img').length"), 0)
    shots(browser, "live-remote")
    before = row()
    browser.open(page.url)
    bench.ok("a page that is opened later shows the same", bench.wait(lambda: row() == before), row())
    browser.js("document.querySelector('#remotes-section').scrollIntoView()")
    browser.screenshot("live-remote-table")
    bench.equal("the console is silent with settings and commands", browser.console_errors(), [])
    bench.equal("no request leaves the page with settings and commands", browser.foreign_requests(page.url), [])
    collector.stop()
    collector.start()
    page.becomes("live", 20)
    bench.ok("a new collector has none", browser.wait("document.querySelector('#remotes-section').hidden"))
    browser.quit()
    bench.browsers.remove(browser)


HOSTILE = {
    "a script": "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "control characters": "van\u0000\u0007\u001b[31m\n\u0085end",
    "letters that turn the line": "\u202egnol\u2066 \u05d0\u05d1",
    "10 kB": "x" * 10_000, "another 10 kB": "x" * 9_999 + "y", "a name of an object's member": "__proto__", "an id": "link",
    "half a pair": "\ud800 \udfff",
}


def batch(device, seqs, outbox="7f3a91c2", now=None, **members):
    now = int((now or time.time()) * 1000)
    return json.dumps({"device": device, "outbox": outbox, "batch_id": f"{outbox}-{seqs[0]}-{len(seqs)}", "locations": [
        {"location": {"lat": 52.5 + seq * 1e-4, "lon": 13.4 + seq * 1e-4}, "timeStamp": (now + seq) // 1000, "time_ms": now + seq,
         "seq": seq, "moving": True, "speed": 9.5, "bearing": 45.0, "accuracy": 5.0, **members} for seq in seqs]}).encode()


def hostile_senders(bench):
    collector = Collector(bench, "--answer", "503", "--every", "4", name="hostile")
    page = Page(bench, collector.url())
    browser = page.browser
    page.becomes("live")
    for number, name in enumerate(HOSTILE.values()):
        for _ in range(2):
            fetch(collector.url("/locations"), data=batch(name, range(number, number + 9), outbox=f"{number:08x}"))
    fetch(collector.url("/locations"), data=batch("van", [1, 2], event="<b>gap</b>", reason="<i>" * 40))
    fetch(collector.url("/locations"), data=b"{\"device\":\"<script>alert(1)</script>\"}")
    fetch(collector.url("/locations"), data=b"\xff\x00 no JSON")
    fetch(collector.url("/locations"), data=batch("poles", [1], outbox="0000000a").replace(b"52.5001", b"90"))
    # More rows than one event takes, over the antimeridian.
    far = json.loads(batch("ferry", range(1, 1201), outbox="0000000b"))
    for index, each in enumerate(far["locations"]):
        each["location"] = {"lat": -17.0, "lon": (179.9 + index * 2e-4 + 180) % 360 - 180}
    bench.equal("a large batch is taken", fetch(collector.url("/locations"), data=json.dumps(far).encode())[0], 200)
    bench.ok("all of them are shown", bench.wait(lambda: page.points() == collector.stats()["locations"]),
             f"{page.points()} of {collector.stats()['locations']}")
    agree(bench, page, collector, "with hostile senders")
    bench.equal("names are text, not elements", browser.js("document.querySelectorAll('aside script, aside img, aside b, aside i').length"), 0)
    bench.equal("none of them ran", browser.js("document.title"), "waypost-collector")
    names = browser.js("[...document.querySelectorAll('#devices [data-device]')].map(each => each.dataset.device)")
    bench.ok("each name is a device of its own", len(set(names)) == len(names) >= len(collector_devices(collector)), len(names))
    bench.ok("a script is shown as it was sent", HOSTILE["a script"] in names)
    bench.ok("control characters are written out", all(character.isprintable() for name in names for character in name),
             [name for name in names if not name.isprintable()][:2])
    bench.ok("long names are cut", max(map(len, names)) < 800, max(map(len, names)))
    bench.ok("injected faults are named", any("injected: answer 503" in each for each in page.requests()))
    bench.ok("a refusal is shown with its reason", any("not JSON" in each for each in page.requests()))
    shots(browser, "live-hostile")
    bench.equal("no request leaves the page with hostile senders", browser.foreign_requests(page.url), [])
    bench.equal("the console is silent with hostile senders", browser.console_errors(), [])
    many_rows(bench, page, collector)
    browser.quit()
    bench.browsers.remove(browser)


def collector_devices(collector):
    return {device for device, _, _ in collector.rows()}


def many_rows(bench, page, collector):
    """More than the history holds: memory of the collector and of the page stay bounded."""
    def resident():
        return int(next(line for line in open(f"/proc/{collector.process.pid}/status") if line.startswith("VmRSS:")).split()[1])

    stuck = http.client.HTTPConnection("127.0.0.1", collector.port)
    stuck.request("GET", "/events")
    before = resident()
    began = time.monotonic()
    for number in range(400):
        fetch(collector.url("/locations"), data=batch("many", range(number * 500 + 1, number * 500 + 501), outbox="0000000c"))
    took = time.monotonic() - began
    stored = collector.stats()["locations"]
    bench.ok("a page that reads nothing delays no upload", took < 60 * 3, f"{stored} rows in {took:.1f} s, {resident() - before} kB more in the collector")
    bench.ok("the page shows the counters of the rush", bench.wait(lambda: page.counters()["locations"] == stored, 30), page.counters()["locations"])
    bench.ok("its map stays bounded", page.points() <= 110_000, page.points())
    stuck.close()


def what_a_browser_may_ask(bench):
    collector = Collector(bench, name="asked")
    fetch(collector.url("/locations"), data=batch("van-7", [1, 2, 3]))
    for host, status in (("127.0.0.1", 200), (f"localhost:{collector.port}", 200), ("[::1]:99", 200), ("evil.example", 421),
                         (f"127.0.0.1.evil.example:{collector.port}", 421), ("", 421), ("localhost:evil", 421)):
        for path in ("/", "/events", "/stats", "/live/main.js"):
            if path == "/events" and status == 200:
                continue
            bench.equal(f"Host {host or 'empty'} is answered {status} for {path}", fetch(collector.url(path), {"Host": host})[0], status)
    bench.equal("other paths are not there", fetch(collector.url("/live/../../etc/passwd"))[0], 404)
    bench.equal("uploads may come under any name", fetch(collector.url("/locations"), {"Host": "collector.lab"}, batch("van-7", [4]))[0], 200)

    first, _ = events(collector, until="request")
    bench.equal("a new page is given the whole state first", first[0][0], "reset")
    last = first[-1][1]
    fetch(collector.url("/locations"), data=batch("van-7", [5, 6]))
    resumed, _ = events(collector, {"Last-Event-ID": last}, until="request", count=1)
    bench.ok("a page that comes back gets what is new, and nothing twice",
             resumed[0][0] == "rows" and not {each[1] for each in resumed} & {each[1] for each in first}, [each[:2] for each in resumed])
    for foreign in ("0-0", "other-7", "x", last.split("-")[0] + "-999999", last + "-1", "-1", "\u00fc"):
        begun, _ = events(collector, {"Last-Event-ID": foreign.encode("utf-8").decode("latin-1")}, until="reset", count=1)
        bench.equal(f"Last-Event-ID {foreign} begins from the start", begun[0][0], "reset")
    connections = []
    for _ in range(40):
        connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
        connection.request("GET", "/events")
        connections.append((connection, connection.getresponse().status))
    bench.equal("pages are limited", sorted({status for _, status in connections}), [200, 503])
    for connection, _ in connections:
        connection.sock and connection.sock.close()
        connection.close()
    bench.ok("closed pages make room", bench.wait(lambda: is_admitted(collector), 15))


def is_admitted(collector):
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
    connection.request("GET", "/events")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def events(collector, headers={}, until="request", count=2):
    """(name, id, data) of each event up to this count of a name, and the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=20)
    connection.request("GET", "/events", headers=headers)
    reply, found, event = connection.getresponse(), [], {}
    while sum(each[0] == until for each in found) < count:
        line = reply.readline().decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif "event" in event:
            found.append((event["event"], event.get("id"), json.loads(event["data"])))
            event = {}
    connection.close()
    return found, connection
