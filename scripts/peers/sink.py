#!/usr/bin/env python3
"""Counts what any of the contestants sends: GET /stats returns the counts, DELETE / resets them. Prints its port.

A process of its own, so that its work is no contestant's CPU time.
"""

import datetime
import gzip
import http.server
import json
import re

counts = {}
TIME = re.compile(rb'"t": ?"(\d{6})')


def times(path, body):
    """The clock of each record, as HHMMSS, in the order in which they came."""
    if path.startswith("/waypost"):
        seconds = [record["timeStamp"] for record in json.loads(body)["locations"]]
        return [datetime.datetime.fromtimestamp(second, datetime.UTC).strftime("%H%M%S") for second in seconds]
    return [match.decode() for match in TIME.findall(body)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def answer(self, body=b"", status=200):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        self.answer(json.dumps(counts).encode())

    do_HEAD = do_GET

    def do_DELETE(self):
        counts.clear()
        counts.update(requests=0, records=0, inversions=0, repeated=0, bytes=0, newest="")
        seen.clear()
        self.answer()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        counts["requests"] += 1
        counts["bytes"] += len(body)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        arrived = times(self.path, body)
        for clock in arrived:
            if clock in seen:
                counts["repeated"] += 1
                continue
            seen.add(clock)
            counts["records"] += 1
            counts["inversions"] += clock < counts["newest"]
            counts["newest"] = max(clock, counts["newest"])
        if self.path.endswith("_bulk"):
            item = {"create": {"status": 201}}
            self.answer(json.dumps({"errors": False, "items": [item] * len(arrived)}).encode())
        else:
            self.answer()

    do_PUT = do_POST

    def log_message(self, *_):
        pass


seen = set()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
