"""The scenario of scripts/live/watch: viewers come, ask, lose sight and leave, while the history goes on."""
import asyncio, datetime, gzip, http.server, json, math, os, pathlib, signal, socket, subprocess, sys, tempfile, threading, time

from ably import AblyRest

from channel import CHANNEL, ENTER, LEAVE, UPDATE, Gate, Service, Viewer, until

root = pathlib.Path(__file__).resolve().parent.parent.parent
waypost = os.environ.get("WAYPOST") or subprocess.run(
    [root / "scripts/build", "--path"], capture_output=True, text=True, check=True).stdout.strip() + "/waypost"


def sentence(body):
    return f"${body}*{__import__('functools').reduce(lambda a, b: a ^ b, body.encode()):02X}\r\n"


class Receiver:
    """A vehicle at 10 m/s over TCP, five fixes a second with the time of this host."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port, self.start, self.speed, self.metres = self.server.getsockname()[1], time.time(), 10.0, 0.0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.server.accept()
            try:
                while True:
                    now = datetime.datetime.now(datetime.timezone.utc)
                    self.metres += self.speed / 5
                    latitude = 52.5 + self.metres / 111_320
                    place = f"{int(latitude):02d}{latitude % 1 * 60:08.5f},N,01324.00000,E"
                    stamp = now.strftime("%H%M%S.%f")[:9]
                    client.sendall((
                        sentence(f"GPRMC,{stamp},A,{place},{self.speed * 1.943844:.2f},0.0,{now.strftime('%d%m%y')},,,A")
                        + sentence(f"GPGGA,{stamp},{place},1,09,0.9,40.0,M,40.0,M,,")).encode())
                    time.sleep(max(0.01, 0.2 - time.time() % 0.2))
            except OSError:
                pass


class History(http.server.BaseHTTPRequestHandler):
    seqs = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        History.seqs += [each["seq"] for each in json.loads(body)["locations"]]
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


async def main(blocked):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), History)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="waypost-watch-") as folder:
        async with Service() as service, Gate(service) as gate:
            # The real client sends no key without TLS.
            auth = 'kind = "bearer", token = "env:SECRET"' if blocked else 'kind = "basic", user = "app.key", password = "env:SECRET"'
            pathlib.Path(folder, "waypost.toml").write_text(f"""
[device]
id = "van"
[source]
kind = "tcp"
host = "127.0.0.1"
port = {receiver.port}
[resolution]
default = {{ priority = "balanced", interval = "3s", displacement = "5m" }}
[sampling]
rule = "interval"
[outbox]
path = "{folder}/outbox.db"
[control]
socket = "{folder}/control.sock"
[[endpoint]]
base_url = "http://127.0.0.1:{server.server_port}"
batch_window = "2s"
[[channel]]
name = "live"
url = "ws://127.0.0.1:{gate.port if blocked else service.port}"
auth = {{ {auth} }}
""")
            log = open(pathlib.Path(folder, "log"), "wb")
            start = lambda: subprocess.Popen([waypost, "run", "--config", f"{folder}/waypost.toml"], stdout=log, stderr=log,
                                             env=os.environ | {"SECRET": "secret"})
            daemon = start()
            try:
                await (through(gate, folder, daemon) if blocked else scenario(service, folder, daemon))
            except BaseException:
                daemon.kill()
                sys.stderr.write(pathlib.Path(folder, "log").read_text()[-3000:])
                raise
    server.shutdown()


def status(folder):
    answer = subprocess.run([waypost, "status", "--json", "--config", f"{folder}/waypost.toml"], capture_output=True, text=True)
    return json.loads(answer.stdout)["channels"][0]


async def rate(viewer, seconds):
    """-> messages in these seconds"""
    before = len(viewer.messages)
    await asyncio.sleep(seconds)
    return len(viewer.messages) - before


async def scenario(service, folder, daemon):
    viewer = Viewer(service, "viewer")
    await viewer.watch()
    # Parked until the first metres.
    await until(lambda: viewer.presence[-1:] == [(UPDATE, 3000)], f"the publisher to move; there is {viewer.presence}", 30)
    await viewer.sees(1, "a location without anybody asking")
    slow = await rate(viewer, 9)
    assert 2 <= slow <= 5, f"{slow} messages in 9 s at one in 3 s"

    began = time.monotonic()
    await viewer.ask(500)
    await viewer.told(UPDATE, 500)
    await viewer.sees(len(viewer.messages) + 2, "the next ones")
    took = time.monotonic() - began
    # Two seconds where nothing else runs: docs/measurements.md.
    assert took < 5, f"the rate changed after {took:.1f} s"
    fast = await rate(viewer, 5)
    assert 6 <= fast <= 12, f"{fast} messages in 5 s at two a second"
    said = await asyncio.to_thread(status, folder)
    watched = said["trackables"]["van"]
    assert said["state"] == "connected" and watched["state"] == "online" and watched["viewers"] == 1, said
    assert list(watched["requests"].values()) == [{"priority": "maximum", "interval_ms": 500, "displacement": 2}], watched

    # What the service has cut comes back within 20 s, as those of a whole fleet would.
    for refused in (False, True):
        service.refuse_resume = refused
        count = len(viewer.messages)
        service.cut("van")
        await until(lambda: len(viewer.messages) > count + 3, f"more after the connection was cut, {refused}", 40)
    await viewer.told(ENTER, 500)

    await viewer.channel.presence.leave()
    await viewer.told(UPDATE, 3000)
    slow = await rate(viewer, 9)
    assert 2 <= slow <= 5, f"{slow} messages in 9 s after the viewer has left"
    said = await asyncio.to_thread(status, folder)
    assert said["trackables"]["van"]["viewers"] == 0, said

    times = [each for _, each in viewer.messages]
    flat = [each for message in times for each in message]
    assert flat == sorted(set(flat)), "a location came twice, or went back in time"
    daemon.send_signal(signal.SIGTERM)
    await viewer.told(LEAVE, 3000)
    assert daemon.wait(20) == 0
    seqs = History.seqs
    assert len(seqs) == len(set(seqs)) > 20 and seqs == sorted(seqs), "the history has gaps"
    await viewer.client.close()
    print(f"watch: {len(viewer.messages)} messages with {len(flat)} locations, the rate followed in {took:.2f} s; {len(seqs)} rows of history")


def form(gate, method):
    """-> the newest request of this kind: path, names of headers that matter, and members of the body"""
    _, target, headers, body = [each for each in gate.requests if each[0] == method][-1]
    said = json.loads(body) if body else None
    return (target.partition("?")[0], sorted(headers.keys() & {"authorization", "content-type", "x-ably-version"}),
            headers["authorization"].split()[0], sorted((said[0] if isinstance(said, list) else said) if said else []))


async def through(gate, folder, daemon):
    """Where no WebSocket comes through, locations arrive by requests, in the form in which the real client makes them."""
    service, viewer = gate.service, Viewer(gate.service, "viewer")
    await viewer.watch()
    await viewer.ask(500)
    await until(lambda: viewer.messages, "a location by a request", 170)
    assert gate.refused > 0 and not any(each["clientId"] == "van" for each in service.channels[CHANNEL].members.values())
    ours = form(gate, "GET"), form(gate, "POST")
    # Whoever watches is asked for.
    fast = await rate(viewer, 5)
    assert 6 <= fast <= 12, f"{fast} messages in 5 s at two a second"
    said = await asyncio.to_thread(status, folder)
    assert said["state"] == "by-requests" and said["trackables"]["van"]["state"] == "publishing", said
    assert said["trackables"]["van"]["viewers"] == 1, said

    async with AblyRest(token="app.token", endpoint="127.0.0.1", port=gate.port, tls=False, use_binary_protocol=False) as real:
        members = (await real.channels.get(CHANNEL).presence.get()).items
        assert [each.client_id for each in members] == ["viewer"], members
        await real.channels.get("tracking:other").publish("enhanced", "{}")
    theirs = form(gate, "GET"), form(gate, "POST")
    assert (ours[0], ours[1][1]) == (theirs[0], theirs[1][1]) or print("ours", ours, "theirs", theirs), "another form"

    gate.blocks = False
    await viewer.told(ENTER, 500) if viewer.presence else await until(
        lambda: viewer.presence, "the connection to take over", 60)
    said = await asyncio.to_thread(status, folder)
    assert said["state"] == "connected", said
    times = [each for _, message in viewer.messages for each in message]
    assert times == sorted(set(times)), "a location came twice, or went back in time"
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(20) == 0
    await viewer.client.close()
    posted = sum(each[0] == "POST" for each in gate.requests)
    print(f"watch blocked: {posted} messages by requests, {gate.refused} WebSockets refused, then the connection took over")


asyncio.run(main(sys.argv[1:] == ["blocked"]))
