"""Bytes that a fix costs on the wire: every admitted fix of a recorded log, 60 a request, by several profiles."""

import contextlib
import gzip
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading

BATCH = 60
# LocationData alone, as other trackers send it.
SIX = """
[profile.six]
url = "${base_url}/locations"
compress = "gzip"
max_records = 1000
record = { location = { lat = "$lat", lon = "$lon" }, timeStamp = "$time_s", accuracy = "$accuracy", speed = "$speed_mps", bearing = "$bearing", altitude = "$altitude" }
body = { locations = "$records" }
"""


class Unavailable(Exception):
    """What is missing, in words."""


class Sink(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context=None):
        self.full, self.records, self.requests, self.shape = [], 0, 0, None
        super().__init__(("127.0.0.1", 0), Handler)
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        top = json.loads(plain)
        count = top["n"] if "n" in top else len(top["locations"])
        self.server.shape = "waypost-compact" if "n" in top else "waypost" if "outbox" in top else "six"
        self.server.requests += 1
        self.server.records += count
        if count == BATCH:
            self.server.full.append(len(body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Relay:
    """Counts what passes between client and server, TLS included; IP and TCP heads are not."""

    def __init__(self, port):
        self.up = self.down = self.connections = 0
        self.target, self.listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accepting, daemon=True).start()

    def accepting(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                server = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(target=self.passing, args=(client, server, "up"), daemon=True).start()
                threading.Thread(target=self.passing, args=(server, client, "down"), daemon=True).start()

    def passing(self, source, target, way):
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                setattr(self, way, getattr(self, way) + len(piece))
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


def certificate(folder):
    """A server's own, which is its authority too."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem",
         "-out", folder / "cert.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


def sent(waypost, log, profile, secure=False):
    """The sink and the relay after a run over `log`."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sink = Sink(certificate(folder) if secure else None)
        relay = Relay(sink.server_port)
        scheme = "https" if secure else "http"
        config = folder / "waypost.toml"
        config.write_text(
            f'[device]\nid = "van-7"\n[source]\nkind = "file"\npath = "{log}"\nplayback = "max"\n'
            f'[control]\nsocket = "{folder}/control.sock"\n[outbox]\npath = "{folder}/outbox.db"\n'
            '[sampling]\nrule = "either"\n[resolution.default]\npriority = "maximum"\ninterval = "0s"\ndisplacement = "0m"\n'
            f'{SIX if profile == "six" else ""}\n'
            f'[[endpoint]]\nname = "main"\nbase_url = "{scheme}://127.0.0.1:{relay.port}"\nprofile = "{profile}"\n'
            f'batch_size = {BATCH}\n' + (f'tls = {{ ca = "{folder}/cert.pem" }}\n' if secure else ""))
        check = subprocess.run([waypost, "check", config], capture_output=True, text=True)
        if check.returncode != 0:
            raise Unavailable((check.stderr or check.stdout).strip().splitlines()[0].split("waypost.toml:")[-1])
        try:
            subprocess.run([waypost, "run", "--config", config], check=True, capture_output=True, timeout=300)
        finally:
            relay.close()
            sink.shutdown()
            sink.server_close()
        if sink.shape != profile or not sink.full:
            raise Unavailable(f"asked for {profile}, the daemon sent {sink.shape}, {len(sink.full)} full bodies")
        return sink, relay


def measured(waypost, logs):
    """(what, bytes per fix or nil, details, limit)"""
    variants = (("native JSON", "waypost", 30), ("six plain fields", "six", 20), ("compact columns", "waypost-compact", 7))
    for log in logs:
        for what, profile, limit in variants:
            title = f"{log.stem}: {what}, gzip, bodies of {BATCH}"
            try:
                sink, _ = sent(waypost, log, profile)
            except Unavailable as problem:
                yield title, None, f"unavailable: {problem}", limit
                continue
            yield title, sum(sink.full) / (BATCH * len(sink.full)), f"{len(sink.full)} full bodies", limit
        title = f"{log.stem}: compact, all in: heads, TLS, one connection"
        try:
            sink, relay = sent(waypost, log, "waypost-compact", secure=True)
        except Unavailable as problem:
            yield title, None, f"unavailable: {problem}", 25
            continue
        yield (title, (relay.up + relay.down) / sink.records,
               f"{relay.up / sink.records:.1f} up, {relay.down / sink.records:.1f} down, {sink.requests} requests, "
               f"{relay.connections} connections", 25)
