"""A million rows that the version before segments left behind: how long a start takes with them, and that they drain in order."""

import contextlib
import gzip
import http.server
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FIXTURE = ROOT / "fixtures/outbox/schema-3.db"
ROWS, BATCH = 1_000_000, 1000


class Sink(http.server.ThreadingHTTPServer):
    """Counts rows, and those that are not after the one before."""

    daemon_threads = True

    def __init__(self):
        self.rows = self.inversions = self.last = 0
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for row in json.loads(body)["locations"]:
            self.server.inversions += row["seq"] <= self.server.last
            self.server.last = row["seq"]
            self.server.rows += 1
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.wfile.flush()

    def log_message(self, *_):
        pass


def queue(path, url):
    """Writes a queue of schema 3 with rows that wait for one endpoint."""
    shutil.copyfile(FIXTURE, path)
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript("DELETE FROM location; DELETE FROM batch; DELETE FROM endpoint WHERE id > 1")
        database.execute("UPDATE endpoint SET name = 'main', fingerprint = ?, formed = 0, unsettled = ?, feed = 0",
                         (f"{url}\nolder", ROWS))
        database.execute("UPDATE state SET value = ? WHERE name IN ('mark', 'rows')", (ROWS,))
        database.executemany(
            "INSERT INTO location (seq, time_ms, lat_e7, lon_e7, odometer_dm, published, event, flags) VALUES (?, ?, ?, ?, ?, 1, 0, 1)",
            ((seq, 1_700_000_000_000 + 1000 * seq, 525_000_000 + seq, 134_000_000, seq) for seq in range(1, ROWS + 1)))
        database.commit()
        assert database.execute("PRAGMA user_version").fetchone() == (3,)


def measured(binary, status):
    """Seconds until the daemon answers, rows that came, and how many of them out of order.

    - Parameter status: reads `waypost status` of a configuration, or nothing as long as the daemon does not answer.
    """
    server = Sink()
    url = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        queue(folder / "outbox.db", url)
        config = folder / "waypost.toml"
        (folder / "log.nmea").touch()
        config.write_text(
            f'[device]\nid = "older"\n[source]\nkind = "file"\npath = "{folder}/log.nmea"\nfollow = true\n'
            f'[control]\nsocket = "{folder}/control.sock"\n[outbox]\npath = "{folder}/outbox.db"\n'
            f'[[endpoint]]\nname = "main"\nbase_url = "{url}"\nbatch_size = {BATCH}\n')
        begin = time.monotonic()
        process = subprocess.Popen([binary, "run", "--config", config], stderr=subprocess.DEVNULL)
        try:
            while not (answer := status(config)) or not answer["queue"]["queue_depth"]:
                time.sleep(0.01)
            took = time.monotonic() - begin
            deadline = time.monotonic() + 900
            while server.rows < ROWS and time.monotonic() < deadline:
                time.sleep(0.2)
        finally:
            process.terminate()
            process.wait()
    return took, server.rows, server.inversions
