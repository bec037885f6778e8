"""The page that `waypost replay --format html` writes: the reports of four logs, and one log looked at in every way."""
import base64, http.server, json, re, shutil, struct, subprocess, threading, zlib

from pages.vehicle import sentence
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LOGS = ["demo-city-drive", "simulated-cold-start", "antimeridian-and-equator", "simulated-parked-drift"]
HOSTILE = "<img src=x onerror=alert(1)> &amp; \" ' \u202e </script><script>alert(2)</script> ${7*7} "
PAGE_BYTES_MAX = 80_000
NARROW_SPACE = "\u202f"


def check(bench):
    modules(bench)
    numbers_of_four_logs(bench)
    one_cursor(bench)
    keys(bench)
    ranges(bench)
    choices(bench)
    looks(bench)
    units_and_gpx(bench)
    phone(bench)
    paper(bench)
    without_scripts(bench)
    names_that_mean_no_good(bench)
    tiles(bench)
    hidden_ends(bench)
    open_end(bench)
    spike(bench)
    poles(bench)
    link(bench)
    void_epochs(bench)
    long_times(bench)
    first_seen(bench)
    compared(bench)
    outside_of_the_hours(bench)
    fences(bench)
    damaged(bench)
    every_fixture(bench)


class Report:
    """A report in a browser, read as a person reads it."""

    def __init__(self, bench, log="demo-city-drive", *options, size=(1440, 900), is_phone=False, fragment=""):
        self.bench, self.browser = bench, bench.browser()
        self.path = written(bench, log, *options)
        self.browser.size(*size, phone=is_phone)
        self.open(fragment)

    def open(self, fragment=""):
        self.browser.open(f"file://{self.path}{fragment}")
        self.bench.ok(f"{self.path.name}{fragment} is drawn", self.browser.wait("document.documentElement.dataset.ready"))
        self.browser.settle()

    def text(self, selector):
        return self.browser.text(selector).replace(NARROW_SPACE, "").replace("\u00a0", " ")

    def cursor(self):
        """The time at the cursor; None without one."""
        found = re.search(r"(\d\d:\d\d:\d\d)", self.text(".r-time"))
        return found and found[1]

    def tip(self):
        return self.browser.js("document.querySelector('#tip').hidden ? '' : document.querySelector('#tip').innerText")

    def element(self, selector):
        return self.browser.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.element(selector).click()
        self.browser.settle()

    def press(self, *keys):
        ActionChains(self.browser.driver).send_keys(*keys).perform()
        self.browser.settle()

    def point(self, selector, right, down):
        """At a place of an element, from its left top."""
        left, top, width, height = self.box(selector)
        ActionChains(self.browser.driver).move_to_element_with_offset(
            self.element(selector), round(right - width / 2), round(down - height / 2)).perform()
        self.browser.settle()

    def box(self, selector):
        return self.browser.js(
            "(({x, y, width, height}) => [x, y, width, height])(document.querySelector(arguments[0]).getBoundingClientRect())", selector)

    def drag(self, selector, start, end, key=None):
        _, _, width, height = self.box(selector)
        element = self.element(selector)
        actions = ActionChains(self.browser.driver)
        if key:
            actions.key_down(key)
        actions.move_to_element_with_offset(element, round((start[0] - 0.5) * width), round((start[1] - 0.5) * height)).click_and_hold()
        for part in (0.3, 0.7, 1):
            actions.move_to_element_with_offset(
                element, *[round((a + (b - a) * part - 0.5) * side) for a, b, side in zip(start, end, (width, height))])
        actions.release()
        if key:
            actions.key_up(key)
        actions.perform()
        self.browser.settle()

    def picture(self, selector):
        """The pixels of a canvas, to be compared."""
        return self.browser.js("document.querySelector(arguments[0]).toDataURL()", selector)

    def marked(self, selector):
        """How many pixels of a canvas that is clear at first are drawn."""
        return self.browser.js(
            "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v).length)"
            "(document.querySelector(arguments[0]))", selector)

    def figures(self):
        return self.browser.js(
            "Object.fromEntries([...document.querySelectorAll('#figures div')].map(e => [e.children[0].textContent, e.children[1].textContent]))")

    def lines(self):
        """The tab "Log": names and texts."""
        return self.browser.js(
            "Object.fromEntries([...document.querySelectorAll('#log table:not(.settings) tr')]"
            ".map(e => [e.children[0].textContent, e.children[1].textContent]))")

    def shows_nothing_foreign(self, what):
        self.bench.equal(f"{what}: no request leaves the page", self.browser.foreign_requests("file:"), [])
        self.bench.equal(f"{what}: no error in the console", self.browser.console_errors(), [])


def written(bench, log, *options):
    """The report of a log of fixtures, or of a path."""
    source = log if hasattr(log, "name") else bench.root / "fixtures/nmea" / f"{log}.nmea"
    path = bench.folder / f"{source.stem[:40]}{'-' if options else ''}{'-'.join(re.sub('[^a-z0-9]+', '', str(each)) for each in options)}.html"
    if not path.exists():
        page = subprocess.run([bench.programs / "waypost", "replay", "--format", "html", *options, source], check=True, capture_output=True).stdout
        path.write_bytes(page)
    return path


def summary_of(bench, log):
    lines = subprocess.run([bench.programs / "waypost", "replay", "--format", "jsonl", bench.root / "fixtures/nmea" / f"{log}.nmea"],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def unpacked(page):
    """Head and columns, by the format and not by the page's own reader."""
    data = zlib.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', page)[1]))
    length = int.from_bytes(data[:4], "big")
    head, at, columns = json.loads(data[4:4 + length]), 4 + length, {}
    for column in head["columns"]:
        columns[column["name"]] = numbers(data[at:at + column["bytes"]])
        at += column["bytes"]
    for variant in head["whatIf"]:
        columns[variant["key"]] = numbers(data[at:at + variant["bytesColumn"]])
        at += variant["bytesColumn"]
    return head, columns, data[at:]


def numbers(data):
    values, value, code, shift = [], 0, 0, 0
    for byte in data:
        code |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            value += -(code + 1) // 2 if code & 1 else code // 2
            values.append(value)
            code = shift = 0
    return values


def count(text):
    return int(re.match(r"[\d\u202f]+", text)[0].replace(NARROW_SPACE, ""))


def modules(bench):
    """A module that is not embedded breaks the page, or is dead."""
    page = written(bench, "demo-city-drive").read_text()
    program = zlib.decompress(base64.b64decode(re.search(r'id="program">([^<]*)<', page)[1])).decode()
    files = [each for each in (bench.root / "Sources/Pages/report").glob("*.js") if each.stem != "boot"]
    bench.equal("every module of the page is in it", [each.name for each in files if each.read_text().splitlines()[0] not in program], [])


def numbers_of_four_logs(bench):
    for log in LOGS:
        report, lines = Report(bench, log), summary_of(bench, log)
        summary = lines[-1]
        head, columns, rest = unpacked(report.path.read_text())
        bench.equal(f"{log}: the page holds the summary of jsonl", head["summary"], summary)
        bench.equal(f"{log}: columns have one value for each epoch", {len(columns[each["name"]]) for each in head["columns"]}, {head["rows"]})
        bench.ok(f"{log}: nothing follows the columns, times rise", not rest and all(a < b for a, b in zip(columns["t"], columns["t"][1:])))
        figures = report.figures()
        names = {"trips": ("trip", "trips"), "stops": ("stop", "stops"), "fixes": ("fixes",), "published": ("kept",), "gaps": ("gap", "gaps")}
        shown = {key: count(next(figures[each] for each in words if each in figures)) for key, words in names.items()}
        bench.equal(f"{log}: the heading shows the numbers of jsonl", shown, {key: summary[key] for key in names})
        shown = report.lines()
        names = {"sentences": "sentences", "checksum_errors": "bad checksums", "fixes": "fixes", "void_epochs": "epochs without a fix",
                 "admitted": "admitted", "published": "kept", "halts": "halts on the way"}
        bench.equal(f"{log}: the log tab shows the numbers of jsonl",
                    {key: count(shown[name]) for key, name in names.items()}, {key: summary[key] for key in names})
        refused = {key.removeprefix("refused: "): count(value) for key, value in shown.items() if key.startswith("refused: ")}
        bench.equal(f"{log}: refused by reason", refused, summary["rejected"])
        names = report.browser.js("[...document.querySelectorAll('.leg .what button')].map(e => e.textContent)")
        trips = [each for each in names if each.startswith("Trip")]
        bench.equal(f"{log}: each trip is a row of the journey", trips, [f"Trip {number + 1}" for number in range(summary["trips"])])
        report.shows_nothing_foreign(log)
        size = page_bytes(report.path)
        bench.ok(f"{log}: the page without data and tables has at most {PAGE_BYTES_MAX} bytes", size <= PAGE_BYTES_MAX, size)
        report.browser.screenshot(f"report-{log}")
        report.browser.quit()
        bench.browsers.remove(report.browser)


def page_bytes(path):
    """Without what depends on the log."""
    page = re.sub(r'(id="data">)[^<]*', r"\1", path.read_text())
    page = re.sub(r'(id="(?:whatif|log)"[^>]*>).*?(</section>)', r"\1\2", page, flags=re.S)
    return len(re.sub(r'(id="static">).*?(<noscript>)', r"\1\2", page, flags=re.S).encode())


def one_cursor(bench):
    report = Report(bench)
    bench.equal("nothing is pointed at first", report.marked(".map-overlay"), 0)
    report.point("#timeline", 300, 120)
    first = report.cursor()
    bench.ok("the timeline moves the cursor of the map", first and report.marked(".map-overlay") > 50, first)
    report.point("#timeline", 500, 120)
    bench.ok("and the line says what is there", report.cursor() > first and "km/h" in report.text(".r-rest"), report.text("#readout"))
    bench.ok("the slider says the same", report.cursor() in report.element("#timeline").get_attribute("aria-valuetext"))
    report.press("n", "n")
    report.press(Keys.ESCAPE)
    report.press("n", "n")
    held, link = report.cursor(), report.browser.js("location.hash")
    bench.ok("a decision is held, and the address names its time", re.fullmatch(r"#t=\d{13}", link), link)
    bench.ok("its tip shows the evidence", "evidence" in report.tip() and "Decided at" in report.tip(), report.tip().replace("\n", " | ")[:120])
    report.point("#map", 20, 400)
    bench.equal("a held cursor stays", report.cursor(), held)
    report.press(Keys.ESCAPE)
    bench.equal("escape lets it go", (report.marked(".map-overlay"), report.browser.js("location.hash")), (0, ""))
    # The middle of the map's own drawing of the cursor is a place of the track: pointing there finds the same time.
    report.open(link)
    bench.equal("the link leads to the same time", report.cursor(), held)
    place = report.browser.js(
        "(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let [n, x, y] = [0, 0, 0];"
        " for (let i = 3; i < d.length; i += 4) if (d[i] > 200) { n++; x += (i >> 2) % c.width; y += (i >> 2) / c.width | 0; }"
        " return [x / n, y / n]; })(document.querySelector('.map-overlay'))")
    report.press(Keys.ESCAPE)
    report.point("#map", *place)
    bench.ok("the map moves the cursor of the timeline", report.cursor() and report.marked("#timeline .over") > 50, report.cursor())
    before = report.picture("#map canvas:first-child")
    report.press("0")
    report.drag("#map", (0.3, 0.5), (0.5, 0.6))
    bench.ok("dragging moves the map", report.picture("#map canvas:first-child") != before)
    report.click("[title='Show all']")
    report.shows_nothing_foreign("cursor")


def keys(bench):
    report = Report(bench)
    report.browser.js("document.querySelector('#timeline').focus()")
    report.press(Keys.HOME)
    first = report.cursor()
    report.press(Keys.ARROW_RIGHT)
    second = report.cursor()
    ActionChains(report.browser.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).perform()
    report.browser.settle()
    bench.equal("arrows move by one fix, with shift by ten", (first, second, report.cursor()), ("07:00:00", "07:00:01", "07:00:11"))
    report.press(Keys.END)
    bench.equal("end is the end of the log", report.cursor(), "07:31:16")
    whole = report.picture("#timeline .base")
    report.press("p")
    bench.ok("a decision chosen by key has its tip", bench.wait(report.tip), report.tip()[:40])
    report.press(Keys.ARROW_LEFT)
    bench.equal("which goes when the cursor goes on", report.tip(), "")
    report.press("p")
    bench.wait(report.tip)
    report.press(Keys.TAB)
    bench.equal("and when the focus does", report.tip(), "")
    # The tip comes two frames after its key.
    ActionChains(report.browser.driver).send_keys("p", Keys.ESCAPE).perform()
    report.browser.settle()
    bench.equal("escape leaves neither tip nor cursor", (report.tip(), report.browser.js("location.hash")), ("", ""))
    report.element("#next").click()
    bench.wait(report.tip)
    report.element("#raw").send_keys(Keys.ESCAPE)
    report.browser.settle()
    bench.equal("nor does it from a box to tick", (report.tip(), report.browser.js("location.hash")), ("", ""))
    report.browser.js("document.querySelector('#timeline').focus()")
    report.press("+")
    bench.ok("plus zooms into time", report.picture("#timeline .base") != whole)
    report.press("0")
    bench.ok("0 shows all", report.picture("#timeline .base") == whole)
    report.press(" ")
    playing = report.element("#play").get_attribute("aria-label")
    start = report.cursor()
    bench.ok("space plays", playing == "Pause" and bench.wait(lambda: report.cursor() > start), (playing, start))
    report.press(" ")
    bench.equal("and pauses", report.element("#play").get_attribute("aria-label"), "Play")
    reached = report.browser.driver.execute_script(
        "return [...document.querySelectorAll('button, select, input, summary, [tabindex=\"0\"]')]"
        ".filter(e => e.checkVisibility() && e.tabIndex < 0 && e.getAttribute('role') !== 'tab').map(e => e.id || e.textContent)")
    bench.equal("all controls are reached by the tab key", reached, [])
    report.element("#tab-journey").send_keys(Keys.ARROW_RIGHT)
    bench.ok("arrows choose the tab", report.browser.js("!document.querySelector('#whatif').hidden && document.activeElement.id === 'tab-whatif'"))
    report.press("?")
    bench.ok("the help opens", report.browser.js("document.querySelector('#keys').open"))
    report.press(Keys.ESCAPE)
    report.click("#tab-journey")
    report.element(".leg .what button").send_keys(Keys.ENTER)
    report.browser.settle()
    bench.equal("a row is chosen by the enter key", report.browser.js("document.querySelectorAll('.leg.on').length"), 1)


def ranges(bench):
    report = Report(bench)
    head, _, _ = unpacked(report.path.read_text())
    whole = report.picture("#timeline .base")
    report.drag("#timeline", (0.3, 0.5), (0.5, 0.5), Keys.SHIFT)
    text = report.text("#range span")
    bench.ok("shift and drag shows the numbers of a range", not report.element("#range").get_attribute("hidden") and "km" in text and "kept" in text, text)
    report.click("#rangeClear")
    bench.ok("which can be cleared", report.element("#range").get_attribute("hidden") is not None)
    trip = head["trips"][0]
    report.open(f"#t={trip['from']}")
    report.press("[")
    report.browser.driver.execute_script(f"location.hash = '#t={trip['to']}'")
    report.browser.settle()
    report.press("]")
    text = report.text("#range span")
    bench.ok("the range of a trip has its distance and speed", f"{trip['metres'] / 1000:.1f} km" in text and f"at most {round(trip['maxSpeed'] * 3.6)} km/h" in text, text)
    report.click("#rangeClear")
    report.press("0")
    report.drag("#timeline", (0.3, 0.5), (0.5, 0.5))
    bench.ok("dragging zooms", report.picture("#timeline .base") != whole)
    left, top, width, height = report.box("#timeline")
    ActionChains(report.browser.driver).move_to_element(report.element("#timeline")).double_click().perform()
    report.browser.settle()
    report.press(Keys.ESCAPE)
    bench.ok("a double click shows all", report.picture("#timeline .base") == whole)


def choices(bench):
    report = Report(bench)
    head, columns, _ = unpacked(report.path.read_text())
    legend, base = report.text("#legend"), report.picture("#map canvas:first-child")
    report.click("#colour [value=speed]")
    bench.ok("colour by speed", "km/h" in report.text("#legend") and report.picture("#map canvas:first-child") != base)
    report.click("#colour [value=accuracy]")
    bench.ok("colour by accuracy", "≤ 5 m" in report.text("#legend"), report.text("#legend"))
    report.click("#colour [value=trip]")
    report.click("#tab-whatif")
    shown = report.browser.js("[...document.querySelectorAll('.variant')].map(e => parseInt(e.children[1].firstChild.textContent.replaceAll('\\u202f', '')))")
    bench.equal("what if shows what each would keep", shown, [each["kept"] for each in head["whatIf"]])
    bench.equal("and has a row for each of them", [len(columns[each["key"]]) for each in head["whatIf"]], shown)
    report.click(".variant:nth-child(4) input")
    bench.ok("one is laid over the map", head["whatIf"][3]["label"] in report.text("#legend"), report.text("#legend"))
    report.browser.screenshot("report-whatif")
    report.click(".variant:nth-child(1) input")
    bench.equal("and taken away again", report.text("#legend"), legend)
    zone = report.text("#when")
    report.click("#zone")
    bench.ok("times can be local", report.text("#zone") == "local" and report.text("#when") != "" and zone.find("UTC") > 0)
    report.click("#zone")
    report.click("#raw")
    bench.ok("raw fixes can be hidden", "fix" not in report.text("#legend").replace("kept", ""), report.text("#legend"))
    report.click("#raw")
    report.click("#tab-journey")
    trip = next(index for index, each in enumerate(report.browser.driver.find_elements(By.CSS_SELECTOR, ".leg")) if "Trip 1" in each.text)
    report.browser.driver.find_elements(By.CSS_SELECTOR, ".leg")[trip].find_element(By.CSS_SELECTOR, "summary").click()
    why = head["trips"][0]["start"]
    text = report.browser.driver.find_elements(By.CSS_SELECTOR, ".leg")[trip].text
    bench.ok("the journey says why", why["words"] in text and f"needs {round(why['evidenceMin'])}" in text, text.replace("\n", " | ")[:200])
    bench.ok("and what the other decision would have needed", why["other"] in text)
    report.shows_nothing_foreign("choices")


def looks(bench):
    report = Report(bench)
    report.press("n", "n")
    for theme in ("light", "dark"):
        report.browser.dark(theme == "dark")
        report.browser.settle()
        bench.equal(f"axe finds nothing, {theme}", report.browser.axe(), [])
        report.browser.screenshot(f"report-{theme}")
    ground = report.browser.js("getComputedStyle(document.body).backgroundColor")
    report.press(Keys.ESCAPE)
    report.click("#scheme")
    bench.ok("light and dark can be chosen", report.browser.js("getComputedStyle(document.body).backgroundColor") != ground)
    for tab in ("whatif", "log"):
        report.click(f"#tab-{tab}")
        bench.equal(f"axe finds nothing, {tab}", report.browser.axe(), [])
        report.browser.screenshot(f"report-{tab}")
    bench.equal("the page does not scroll on a desktop", report.browser.js("document.documentElement.scrollHeight - innerHeight"), 0)


def overlap(one, other):
    """Whether two boxes (left, top, width, height) have a part in common."""
    return all(one[side] < other[side] + other[side + 2] and other[side] < one[side] + one[side + 2] for side in (0, 1))


def units_and_gpx(bench):
    report = Report(bench)
    seen = []
    for _ in range(3):
        seen.append((report.element("#unit").text, report.figures()["distance"].strip(), "mph" in report.text("#journey")))
        report.click("#unit")
    bench.equal("speeds and ways in three units", seen, [("km/h", "5.6 km", False), ("mph", "3.5 mi", True), ("kn", "3.0 nmi", False)])
    bench.ok("trips have an average, a climb and what was kept", all(word in report.text("#journey") for word in ("on average", "up,", "kept")))
    # The file would go to the downloads.
    report.browser.driver.execute_script("URL.createObjectURL = blob => { window.saved = blob; return 'blob:none'; }")
    report.click("#gpx")
    text = report.browser.driver.execute_async_script("const done = arguments[0]; window.saved.text().then(done)")
    bench.ok("GPX has the trips, stops and kept locations", (text.count("<trk>"), text.count("<wpt"), text.count("<trkpt")) == (2, 3, 59),
             (text.count("<trk>"), text.count("<wpt"), text.count("<trkpt")))
    (bench.output / "saved.gpx").write_text(text)


def phone(bench):
    report = Report(bench, size=(390, 844), is_phone=True)
    browser = report.browser
    bench.equal("phone: nothing is wider than the screen", browser.sideways(), 0)
    small = browser.js(
        "[...document.querySelectorAll('button, select')].filter(e => e.checkVisibility() && !e.closest('.leg')"
        " && (e.offsetHeight < 36 || e.offsetWidth < 34)).map(e => e.id || e.textContent)")
    bench.equal("phone: controls are large enough for a finger", small, [])
    bench.equal("phone: axe finds nothing", browser.axe(), [])
    browser.screenshot("report-phone", whole=True)
    map_box = report.box("#map")
    browser.touch(*[[(190, map_box[1] + 200 - 12 * step)] for step in range(14)])
    bench.ok("phone: one finger on the map scrolls the page", bench.wait(lambda: browser.js("scrollY") > 80), browser.js("scrollY"))
    # The scrolling goes on for a moment after the finger has left.
    bench.wait(lambda: browser.driver.execute_script("scrollTo(0, 0)") or browser.settle() or browser.js("scrollY === 0"))
    browser.settle()
    before, middle = report.picture("#map canvas:first-child"), (195, map_box[1] + map_box[3] / 2)
    browser.touch(*[[(middle[0] - 30 - 8 * step, middle[1]), (middle[0] + 30 + 8 * step, middle[1])] for step in range(9)])
    is_zoomed = bench.wait(lambda: report.picture("#map canvas:first-child") != before)
    bench.ok("phone: two fingers zoom the map", is_zoomed and browser.js("scrollY") == 0, browser.js("scrollY"))
    browser.driver.execute_script("document.querySelector('#timeline').scrollIntoView({block: 'center'})")
    left, top, width, height = report.box("#timeline")
    browser.touch(*[[(left + width * (0.3 + 0.05 * step), top + 80)] for step in range(5)])
    bench.ok("phone: a finger moves the cursor", report.cursor() and "km/h" in report.text(".r-rest"), report.text("#readout"))
    report.click("#next")
    bench.wait(report.tip)
    report.click("#next")
    tip = bench.wait(report.tip) and report.box("#tip")
    covered = [each for each in ("#map", "#timeline", "#readout") if overlap(tip, report.box(each))]
    is_seen = tip[1] >= 0 and tip[1] + tip[3] <= 844 + 1
    bench.equal("phone: the tip of a decision covers nothing, and is in sight", (covered, is_seen, "Decided at" in report.tip()), ([], True, True))
    browser.screenshot("report-phone-tip")
    report.press(Keys.ESCAPE)
    for tab in ("whatif", "log"):
        report.click(f"#tab-{tab}")
        bench.equal(f"phone: nothing is wider than the screen, {tab}", browser.sideways(), 0)
        browser.screenshot(f"report-phone-{tab}", whole=True)
    report.shows_nothing_foreign("phone")


def paper(bench):
    whole = printed_pictures(Report(bench))
    report = Report(bench)
    report.element(".leg:nth-child(2) .what button").click()
    report.press("+", "+")
    shown = report.picture("#map canvas:first-child")
    bench.ok("paper: it has the whole log, whatever is looked at", printed_pictures(report) == whole)
    report.browser.dark(True)
    report.browser.settle()
    # Without backgrounds, as browsers print unless one asks for them.
    pdf = base64.b64decode(report.browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
    (bench.output / "report.pdf").write_bytes(pdf)
    report.browser.dark(False)
    report.browser.settle()
    bench.equal("paper: reasons are folded again", report.browser.js("document.querySelectorAll('details[open]').length"), 0)
    bench.ok("paper: the map is as it was before", report.picture("#map canvas:first-child") == shown)
    from pypdf import PdfReader
    pages = PdfReader(bench.output / "report.pdf").pages
    texts = [page.extract_text() for page in pages]
    bench.ok("paper: no page is blank", all(len(text.strip()) > 40 for text in texts), [len(text) for text in texts])
    text = "".join(texts)
    bench.ok("paper: reasons and what-if are on it", "Decided at" in text and "What other settings" in text)
    bench.ok("paper: defaults are a line", re.search(r"\d+ settings have their default", text) and "stationary_radius" not in text)
    fills = set(re.findall(r"([\d.]+ [\d.]+ [\d.]+) rg", "".join(page.get_contents().get_data().decode("latin-1") for page in pages)))
    colours = [tuple(round(float(part) * 255) for part in each.split()) for each in fills]
    bench.equal("paper: the legend has its colours, those of light", [each for each in ((0x7C, 0x87, 0x96), (0x0B, 0x62, 0xC4)) if each not in colours], [])
    # The same on the screen, where it can be looked at.
    report.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    report.browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    colours = report.browser.js(
        "[...document.querySelectorAll('img.paper')].map(image => { const c = document.createElement('canvas'); c.width = image.naturalWidth;"
        " c.height = image.naturalHeight; const x = c.getContext('2d'); x.drawImage(image, 0, 0);"
        " return new Set(new Uint32Array(x.getImageData(0, 0, c.width, c.height).data.buffer)).size; })")
    bench.ok("paper: map and timeline are drawn on it", len(colours) == 2 and min(colours) > 20, colours)
    report.browser.size(703, 1000)
    report.browser.screenshot("report-paper", whole=True)


def printed_pictures(report):
    report.browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    sources = report.browser.js("[...document.querySelectorAll('img.paper')].map(image => image.src)")
    report.browser.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    report.browser.settle()
    return sources


def without_scripts(bench):
    path = written(bench, "demo-city-drive")
    browser = bench.browser()
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(f"file://{path}")
    body = browser.driver.find_element(By.TAG_NAME, "body").text
    # Where no script runs, nothing can be waited for by one.
    shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    (bench.output / "report-no-scripts.png").write_bytes(base64.b64decode(shot["data"]))
    bench.ok("without scripts: the journey is there", "Trip 1" in body and "Trip 2" in body, body[:80].replace("\n", " | "))
    bench.ok("without scripts: the summary is there", "1877" in body.replace(NARROW_SPACE, "").replace(",", ""))
    bench.ok("without scripts: the notice is there", "This page holds every position of the log" in body)
    bench.ok("without scripts: no empty controls", "raw fixes" not in body and "copy link" not in body)
    head, _, _ = unpacked(path.read_text())
    rows = [line.replace(NARROW_SPACE, "") for line in body.split("\n")]
    missing = [each["label"] for each in head["whatIf"] if not any(
        line.startswith(f"{each['label']}: {each['words']} {each['kept']} ") for line in rows)]
    bench.equal("without scripts: what-if is there", missing, [])
    bench.ok("without scripts: other stop timeouts are there", any(line.startswith("5 min (in force) 2 2 ") for line in rows))
    health = [f"sentences {head['summary']['sentences']}", f"kept {head['summary']['published']}", "a fix every 1 s"]
    bench.equal("without scripts: the health of the log is there", [line for line in health if line not in rows], [])
    bench.ok("without scripts: defaults are a line", any(re.fullmatch(r"\d+ settings have their default", line) for line in rows))


def names_that_mean_no_good(bench):
    log = bench.folder / f"{HOSTILE.replace('/', '∕')}.nmea"
    shutil.copy(bench.root / "fixtures/nmea/demo-city-drive.nmea", log)
    report = Report(bench, log)
    bench.ok("a hostile name is text", "<img src=x onerror=alert(1)>" in report.text("#name"), report.text("#name"))
    made = report.browser.js("document.querySelectorAll('img, iframe, object').length + document.querySelectorAll('script').length")
    bench.equal("and makes no element", made, 4)
    bench.equal("the page has no other script or policy", report.path.read_text().count("Content-Security-Policy"), 1)
    report.shows_nothing_foreign("hostile name")


class Tile(http.server.BaseHTTPRequestHandler):
    """A pixel of colour, for whatever is asked."""

    def do_GET(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
        image += chunk(b"IDAT", zlib.compress(b"\0\x40\xa0\x60")) + chunk(b"IEND", b"")
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Content-Length", str(len(image)))
        self.end_headers()
        self.wfile.write(image)

    def log_message(self, *_):
        pass


def tiles(bench):
    """Nothing is asked of a tile server before a person wants it; then nothing of anyone else."""
    tile_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tile)
    threading.Thread(target=tile_server.serve_forever, daemon=True).start()
    server = f"http://127.0.0.1:{tile_server.server_port}"
    report = Report(bench, "demo-city-drive", "--tiles", f"{server}/{{z}}/{{x}}/{{y}}.png", "--attribution", "© a map")
    bench.equal("tiles: off at first", (report.browser.js("document.querySelector('#tiles').checked"), report.browser.foreign_requests("file:")), (False, []))
    bench.ok("tiles: the page says what they disclose", "learns where you look" in report.text("#notice"), report.text("#notice"))
    report.click("#tiles")
    asked = [url for url in report.browser.requests() if url.startswith(server)]
    bench.ok("tiles: loaded when they are switched on", asked, asked[:1])
    bench.equal("tiles: from that server alone", report.browser.foreign_requests("file:", server + "/"), [])
    report.browser.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    images = report.browser.js("[...document.querySelectorAll('img.paper')].map(image => image.src.length)")
    report.browser.driver.execute_script("dispatchEvent(new Event('afterprint'))")
    report.browser.settle()
    bench.ok("tiles: the map has its picture on paper", len(images) == 2 and min(images) > 5000, images)
    # What tiles are drawn on cannot be read by a script.
    before = report.element("#map").screenshot_as_png
    report.drag("#map", (0.3, 0.5), (0.5, 0.6))
    bench.ok("tiles: and the map moves afterwards", report.element("#map").screenshot_as_png != before)
    report.browser.screenshot("report-tiles")
    tile_server.shutdown()
    without = Report(bench)
    bench.ok("tiles: without a server there is no box for them", without.browser.js("document.querySelector('#tilesLabel').hidden"))


def altered(bench, name, change):
    """The demo drive with other sentences: `change(second, fields)` gives a list of bodies without `$` and checksum, each of RMC and GGA."""
    path, second = bench.folder / f"{name}.nmea", -1
    with path.open("w") as log:
        for line in (bench.root / "fixtures/nmea/demo-city-drive.nmea").read_text().splitlines():
            if not line.startswith("$"):
                continue
            fields = line[1:].split("*")[0].split(",")
            second += fields[0].endswith("RMC")
            log.writelines(sentence(body) for body in change(second, fields))
    return path


def open_end(bench):
    report = Report(bench, altered(bench, "open-end", lambda second, fields: [",".join(fields)] if second < 400 else []))
    bench.ok("a trip that goes on: the journey says so", "still under way at the end of the log" in report.text("#journey"))
    for _ in range(3):
        report.press("n")
        bench.wait(report.tip)
    bench.ok("a trip that goes on: its end is a decision with a tip", "Trip 1 is still under way at the end of the log" in report.tip(), report.tip())
    report.press(Keys.ESCAPE)
    row = map_place(report, 1772435199000)  # 07:06:39, the last fix
    report.open()
    near = [near_colour(report, (row[0] + right, row[1]), (255, 255, 255)) for right in (0, 40)]
    bench.equal("a trip that goes on: an open mark shows where", near, [True, False])
    report.browser.screenshot("report-open-end")


def spike(bench):
    """One inaccurate fix must not flatten the accuracy of the others."""
    def worse(factor):
        return lambda second, fields: [",".join(fields[:8] + [f"{float(fields[8]) * (factor if second == 900 else 1):.1f}"] + fields[9:])
                                       if fields[0].endswith("GGA") else ",".join(fields)]
    pictures = []
    for factor in (1, 12):
        report = Report(bench, altered(bench, f"accuracy-{factor}", worse(factor)))
        pictures.append([report.browser.js(
            "((c, [from, to]) => { const w = c.width; return c.getContext('2d').getImageData(w * from, c.height * 0.53, w * (to - from), c.height * 0.16).data.join(); })"
            "(document.querySelector('#timeline .base'), arguments[0])", part) for part in ((0.1, 0.4), (0.6, 0.9), (0.48, 0.54))])
    bench.equal("a spike of accuracy: the others keep their scale", [one == other for one, other in zip(*pictures)], [True, True, False])
    report.browser.screenshot("report-spike")


def poles(bench):
    """Beyond 85° all latitudes lie on the edge of the map: no length there is true."""
    def far(second, fields):
        place = 3 if fields[0].endswith("RMC") else 2
        return [",".join(fields[:place] + ["89" + fields[place][2:]] + fields[place + 1:])]
    bars = []
    for log in ("demo-city-drive", altered(bench, "pole", far)):
        report = Report(bench, log)
        bars.append(report.browser.js(
            "(c => { const r = c.width / c.clientWidth, d = c.getContext('2d').getImageData(16 * r, c.height - 14 * r, 40 * r, 1).data;"
            " return new Set(new Uint32Array(d.buffer)).size === 1 && d[0] < 120; })(document.querySelector('#map canvas:first-child'))"))
    bench.equal("poles: there is no bar of lengths", bars, [True, False])
    report.browser.screenshot("report-pole")


def link(bench):
    report = Report(bench)
    bench.ok("a link needs a moment", not report.element("#link").is_enabled())
    report.browser.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    report.press("n", "n")
    report.click("#link")
    bench.ok("the button says that it is copied", bench.wait(lambda: report.text("#link") == "copied"), report.text("#link"))
    copied = report.browser.driver.execute_async_script("const done = arguments[0]; navigator.clipboard.readText().then(done, error => done(String(error)))")
    bench.equal("and what is copied is the address of the moment", copied, report.browser.js("location.href"))


def void_epochs(bench):
    def change(has_survey):
        def sentences(second, fields):
            if not 300 <= second < 420:
                return [",".join(fields)]
            if fields[0].endswith("GGA"):
                return [",".join(fields[:2] + ["", "", "", "", "0", "00", "", "", "", "", "", "", ""])]
            seen = 3 if second < 400 else 4
            survey = [f"GPGSV,1,1,0{seen}" + "".join(f",{number + 1:02},40,083,20" for number in range(min(4, seen)))] if has_survey else []
            return [",".join(fields[:2] + ["V", "", "", "", "", "", ""] + fields[9:10] + ["", "", "N"])] + survey
        return sentences
    for name, has_survey, words, range_words in (("void", False, "satellites in view: not reported", "not reported"), ("sky", True, "3 satellites in view", "3 to 4")):
        report = Report(bench, altered(bench, name, change(has_survey)))
        report.open("#t=1772435120000")  # 07:05:20
        bench.ok(f"{name}: the line says what was in view", words in report.text(".r-rest"), report.text(".r-rest"))
        bench.equal(f"{name}: and so does the log", report.lines().get("satellites in view meanwhile"), range_words)
    report.browser.screenshot("report-void")


def long_times(bench):
    def later(second, fields):
        if fields[0].endswith("RMC") and second >= 900:
            fields[9] = "070326"
        return [",".join(fields)]
    report = Report(bench, altered(bench, "days", later))
    text = report.text("#journey") + report.text("#when")
    bench.ok("days are not counted in hours", "5 d 0 h" in text and not re.search(r"\b1\d\d h", text), re.findall(r"\d+ d \d+ h", text))


def first_seen(bench):
    def fast(second, fields):
        if fields[0].endswith("RMC") and second < 60:
            fields[7:9] = "26.0", "90.0"
        return [",".join(fields)]
    path = altered(bench, "fast", fast)
    report = Report(bench, path)
    bench.ok("first seen with a speed: the page says what is known", "positions stayed at one place, although the receiver says 48 km/h" in report.text("#journey"))
    text = subprocess.run([bench.programs / "waypost", "replay", path], check=True, capture_output=True, text=True).stdout
    bench.ok("first seen with a speed: so does the text", "although the receiver says 48 km/h" in text, text.splitlines()[0])


def compared(bench):
    source = '[source]\nkind = "file"\npath = "/dev/null"\n'
    (bench.folder / "same.toml").write_text(source)
    (bench.folder / "other.toml").write_text(source + '[sampling]\nrule = "track-error"\nbound = "3m"\n')
    report = Report(bench, "demo-city-drive", "--compare", bench.folder / "same.toml", "--compare", bench.folder / "other.toml")
    report.click("#tab-whatif")
    head, _, _ = unpacked(report.path.read_text())
    text = report.text("#whatif")
    bench.ok("compare: what is the same is said once", "same.toml: the same settings as those in force" in text and [
        each["label"] for each in head["whatIf"] if "toml" in each["label"]] == ["other.toml"])
    bench.ok("compare: keys that differ are named", 'differs in [sampling] rule = "track-error", [sampling] bound = "3m"' in text)
    bench.ok("compare: the bound holds", next(each for each in head["whatIf"] if "toml" in each["label"])["worst"] <= 3.05)
    report.browser.screenshot("report-compared")


def hidden_ends(bench):
    report = Report(bench, "demo-city-drive", "--hide-ends", "200m")
    head, columns, _ = unpacked(report.path.read_text())
    whole, all_columns, _ = unpacked(written(bench, "demo-city-drive").read_text())
    notice = report.text("#notice")
    bench.equal("hidden ends: the page says so", ("200 m" in notice, "every position" in notice), (True, False))
    ends = [trip[end] for trip in whole["trips"] for end in ("from", "to")]
    places = {(lat, lon) for lat, lon in zip(columns["lat"], columns["lon"])}
    at = {time: (lat, lon) for time, lat, lon in zip(all_columns["t"], all_columns["lat"], all_columns["lon"])}
    bench.equal("hidden ends: where trips begin and end is not in it", [time for time in ends if at.get(time) in places], [])
    parked = {(stop.get("lat"), stop.get("lon")) for stop in whole["stops"]}
    bench.equal("hidden ends: nor where it was parked", [stop for stop in head["stops"] if (stop.get("lat"), stop.get("lon")) in parked], [])


    bench.equal("hidden ends: the heading still says when the log was", report.text("#when"), Report(bench).text("#when"))
    bench.equal("hidden ends: what is hidden is no silence", "1 s at" in report.lines()["longest silence"], True)
    standing = re.match(r"[\d\u202f]+, (\d+) %", report.lines()["kept while nothing moved"])
    far = Report(bench, "demo-city-drive", "--hide-ends", "500m")
    head, columns, _ = unpacked(far.path.read_text())
    far.click("#raw")
    cut = head["cuts"][0]
    # What is hidden lies between two rows of trip 1: nothing may be drawn between them, and lines where fixes are shown.
    places = [map_place(far, columns["t"][row]) for row in (cut - 1, cut, cut // 2)]
    far.open()
    far.click("#raw")
    middle = [(a + b) / 2 for a, b in zip(*places[:2])]
    is_far = max(abs(a - b) for a, b in zip(*places[:2])) > 30
    blue = [near_colour(far, place, (0x0B, 0x62, 0xC4)) for place in (middle, places[2])]
    bench.equal("hidden ends: no line over what is hidden, and none under dots", (is_far, *blue), (True, False, True))
    far.browser.screenshot("report-hidden-ends")
    bench.equal("hidden ends: shares are of all that was kept", int(standing[1]), round(100 * head["keptStanding"] / head["summary"]["published"]))


def map_place(report, time):
    """Where the cursor is on the map, in pixels of the canvas."""
    report.open(f"#t={time}")
    return report.browser.js(
        "(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let [n, x, y] = [0, 0, 0];"
        " for (let i = 3; i < d.length; i += 4) if (d[i] > 200) { n++; x += (i >> 2) % c.width; y += (i >> 2) / c.width | 0; }"
        " return [x / n, y / n]; })(document.querySelector('.map-overlay'))")


def near_colour(report, place, colour):
    """Whether a pixel of the map within 4 of a place has a colour."""
    return report.browser.js(
        "((c, x, y, colour) => { const d = c.getContext('2d').getImageData(x - 4, y - 4, 9, 9).data;"
        " for (let i = 0; i < d.length; i += 4) if (colour.every((v, k) => Math.abs(v - d[i + k]) < 6)) return true; return false; })"
        "(document.querySelector('#map canvas:first-child'), arguments[0], arguments[1], arguments[2])", *place, list(colour))


def outside_of_the_hours(bench):
    config = bench.folder / "tuesday.toml"
    config.write_text("""
        [source]
        kind = "file"
        path = "/dev/null"
        [schedule]
        timezone = "UTC"
        track = "tue"
        """)
    report = Report(bench, "demo-city-drive", "--config", config)
    head, columns, _ = unpacked(report.path.read_text())
    bench.ok("outside of the hours: the page says why there is nothing", "outside of [schedule]" in report.text("#journey"), report.text("#journey"))
    report.browser.screenshot("report-outside-hours")
    # The scale of speed fits the fastest fix: nothing is drawn over the line of decisions.
    drawn = report.browser.js(
        "(c => { const x = c.getContext('2d'), r = c.width / c.clientWidth; const d = x.getImageData(60 * r, 44 * r, c.width - 80 * r, 12 * r).data;"
        " return new Set(new Uint32Array(d.buffer)).size; })(document.querySelector('#timeline .base'))")
    bench.ok("outside of the hours: the chart stays in its row", max(columns["speed"]) > 1000 and drawn < 12, drawn)
    report.shows_nothing_foreign("outside of the hours")


def fences(bench):
    config = bench.folder / "fences.toml"
    config.write_text("""
        [source]
        kind = "file"
        path = "/dev/null"
        [[endpoint]]
        base_url = "http://127.0.0.1:9"
        [[geofence]]
        id = "depot"
        name = "<b onclick=alert(1)>Depot</b>"
        center = { latitude = 52.5112603, longitude = 13.4155468 }
        radius = "150m"
        [[geofence]]
        id = "yard"
        polygon = [[52.494, 13.411], [52.495, 13.411], [52.495, 13.414], [52.493, 13.414]]
        """)
    report = Report(bench, "demo-city-drive", "--config", config)
    head, _, _ = unpacked(report.path.read_text())
    bench.ok("fences are in the legend, and were crossed", "geofence" in report.text("#legend") and head["crossings"], head["crossings"][:1])
    tips = []
    for _ in range(len(head["crossings"]) + 5):
        report.press("n")
        bench.wait(report.tip)
        tips.append(report.tip())
    bench.ok("a crossing is a decision, and a name is text", any("<b onclick=alert(1)>Depot</b>" in tip for tip in tips), [tip.split("\n")[0] for tip in tips])
    report.browser.screenshot("report-fences")
    report.shows_nothing_foreign("fences")


def every_fixture(bench):
    """Odd logs: one fix, no speed, no accuracy, other centuries. Nothing of them may break the page."""
    browser, shown = bench.browser(), 0
    for log in sorted((bench.root / "fixtures/nmea").glob("*.nmea")):
        try:
            path = written(bench, log)
        except subprocess.CalledProcessError as error:
            bench.ok(f"{log.stem}: no report, and a reason", b"waypost:" in error.stderr, error.stderr.decode().strip())
            continue
        browser.open(f"file://{path}")
        is_drawn = browser.wait("document.documentElement.dataset.ready")
        ActionChains(browser.driver).move_to_element(browser.driver.find_element(By.ID, "timeline")).move_to_element(
            browser.driver.find_element(By.ID, "map")).send_keys("n", "n", "[", "+", "-", "]", "0", " ", " ").perform()
        browser.settle()
        words = browser.js("document.body.innerText")
        if not is_drawn or re.search("NaN|undefined|Infinity", words) or browser.console_errors():
            bench.ok(f"{log.stem} is drawn", False)
        shown += 1
    bench.ok("every log of fixtures is drawn", shown > 20, shown)


def damaged(bench):
    """Half of the data: the tables stay, and the page says what it could not do."""
    page = written(bench, "demo-city-drive").read_text()
    data = re.search(r'id="data">([^<]*)<', page)[1]
    path = bench.folder / "damaged.html"
    path.write_text(page.replace(data, data[:len(data) // 2 // 4 * 4]))
    browser = bench.browser()
    browser.open(f"file://{path}")
    bench.ok("damaged data: the page says so", browser.wait("document.querySelector('.failure')"))
    bench.ok("damaged data: the tables stay", "Trip 1" in browser.driver.find_element(By.TAG_NAME, "body").text)
