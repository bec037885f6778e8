"""A real Chromium, our programs beside it, and checks that are counted."""
import base64, json, os, pathlib, shutil, socket, subprocess, sys, tempfile, time, urllib.error, urllib.parse, urllib.request

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service

# A machine that does much else at once is slow, not broken.
SLACK = 3


class Bench:
    """What the checks of one page need: a folder, processes that end with it, a browser, and a count of what failed."""

    def __init__(self, root, name):
        self.root, self.name = root, name
        self.output = root / "build" / "pages"
        self.output.mkdir(parents=True, exist_ok=True)
        self.programs = pathlib.Path(os.environ.get("WAYPOST_BIN") or subprocess.run(
            [root / "scripts/build", "--path"], check=True, capture_output=True, text=True).stdout.strip())
        self.passed, self.failed = 0, []
        self.processes, self.browsers = [], []

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="waypost-pages-"))
        return self

    def __exit__(self, kind, error, trace):
        for browser in self.browsers:
            browser.quit()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        if error is not None and self.failed:
            print(f"  after {len(self.failed)} failed checks:", file=sys.stderr)
        if error is not None or self.failed:
            for log in self.folder.glob("*.log"):
                shutil.copy(log, self.output / f"{self.name}-{log.name}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def ok(self, what, holds, detail=""):
        """One check. A failure is counted, and the rest goes on."""
        print(f"  {'ok  ' if holds else 'FAIL'} {what}{f': {detail}' if detail != '' else ''}", flush=True)
        if holds:
            self.passed += 1
        else:
            self.failed.append(what)

    def need(self, what, holds, detail=""):
        """A check without which the rest makes no sense."""
        self.ok(what, holds, detail)
        if not holds:
            raise SystemExit(f"pages: {self.name} cannot go on")

    def equal(self, what, found, expected):
        self.ok(what, found == expected, found if found == expected else f"{found!r} is not {expected!r}")

    def report(self):
        print(f"{self.name}: {self.passed} checks passed, {len(self.failed)} failed; see {self.output.relative_to(self.root)}")
        return len(self.failed)

    def start(self, program, *arguments, log):
        """One of our programs, which ends with the bench at the latest."""
        with open(self.folder / f"{log}.log", "ab") as output:
            process = subprocess.Popen([self.programs / program, *arguments], stdout=output, stderr=output)
        self.processes.append(process)
        return process

    def wait(self, condition, seconds=10):
        """Whether it holds within this time."""
        until = time.monotonic() + seconds * SLACK
        while time.monotonic() < until:
            if condition():
                return True
            time.sleep(0.05)
        return False

    def browser(self, **options):
        browser = Browser(self, **options)
        self.browsers.append(browser)
        return browser


class Browser:
    def __init__(self, bench, width=1440, height=900):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"):
            options.add_argument(each)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.bench = bench
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        self.driver.set_script_timeout(60)
        self.requested = []
        self.size(width, height)

    def quit(self):
        self.driver.quit()

    def open(self, url):
        self.driver.get(url)

    def js(self, code, *arguments):
        """The value of an expression."""
        return self.driver.execute_script(f"return ({code})", *arguments)

    def with_modules(self, paths, code):
        """The value of an expression in which `m` has the modules at these paths of the page's own server."""
        return self.driver.execute_async_script("""const [paths, done] = arguments;
            Promise.all(paths.map(path => import(path))).then(list => Object.assign({}, ...list.map(each => ({...each}))))
              .then(m => { const value = %s; return value; }).then(done, error => done(String(error)));""" % code, paths)

    def touch(self, *steps):
        """Fingers on the screen: each step is a list of (x, y), one for each finger."""
        for number, fingers in enumerate(steps):
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {
                "type": "touchMove" if number else "touchStart", "touchPoints": [{"x": x, "y": y, "id": index} for index, (x, y) in enumerate(fingers)]})
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.settle()

    def wait(self, code, seconds=10):
        """Whether an expression becomes true within this time."""
        def holds():
            try:
                return self.js(code)
            except WebDriverException:
                return False
        return self.bench.wait(holds, seconds)

    def rests(self, code, seconds=10):
        """Whether an expression keeps its value for half a second within this time."""
        last, since = self.js(code), time.monotonic()
        def holds():
            nonlocal last, since
            now = self.js(code)
            if now != last:
                last, since = now, time.monotonic()
            return time.monotonic() - since >= 0.5
        return self.bench.wait(holds, seconds)

    def text(self, selector):
        return self.js("document.querySelector(arguments[0])?.textContent", selector)

    def settle(self):
        """Waits until what is asked to be drawn has been drawn."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))")

    def size(self, width, height, phone=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone})
        self.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": phone})

    def dark(self, is_dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]})

    def screenshot(self, name, whole=False):
        """Into build/pages/NAME.png; with `whole` also what one has to scroll to."""
        self.settle()
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        (self.bench.output / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def is_on_top(self, selector):
        """Whether nothing covers the middle of an element."""
        return self.js("""(() => { const element = document.querySelector(arguments[0]), box = element.getBoundingClientRect();
            const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return top !== null && (element.contains(top) || top.contains(element)) && box.width > 0; })()""", selector)

    def sideways(self):
        """By how many pixels the page is wider than the screen."""
        return self.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def console_errors(self, expected=()):
        """What the console says that is none of the texts that were to be expected."""
        return [each["message"] for each in self.driver.get_log("browser")
                if each["level"] == "SEVERE" and not any(text in each["message"] for text in expected)]

    def requests(self):
        """The address of each request so far."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requested.append(message["params"]["request"]["url"])
        return self.requested

    def foreign_requests(self, *origins):
        """Requests to elsewhere. `data:` and `blob:` leave no page, and `chrome:` is the browser itself."""
        inside = ("data:", "blob:", "chrome:", "about:", *origins)
        return [url for url in self.requests() if not url.startswith(inside)]

    def axe(self):
        """What axe-core finds, as lines."""
        source = next(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/axe_playwright_python/axe.min.js")).read_text()
        # As the driver, not as the page: the page's own policy lets no foreign script in.
        self.driver.execute_script(source)
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations), e => done([{id: String(e), nodes: []}]))")
        return [f"{each['id']}: {node['target']} {node.get('failureSummary', '')}" for each in found for node in each["nodes"] or [{"target": ""}]]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, headers={}, data=None, method=None, timeout=20):
    """Status and body, also of a refusal."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=timeout) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
