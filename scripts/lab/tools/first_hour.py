"""Servers that a maker may have: what the mistakes of the first hour are made at.

Traccar (5055: van-7 alone is known), HTTP that refuses (8081), TLS with a certificate of its own (8443).
"""
import http.server
import pathlib
import ssl
import sys
import threading
import urllib.parse


class Traccar(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        fields = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query or body)
        status = 200 if fields.get("id") == ["van-7"] else 400
        if status == 200:
            with open("/lab/received", "a") as file:
                file.write(body + "\n")
        self.reply(status)

    def reply(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = answer

    def log_message(self, *arguments):
        pass


class Refuses(Traccar):
    def answer(self):
        self.reply(401)

    do_GET = do_POST = answer


def serve(port, handler, certificate=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{certificate}.pem", f"{certificate}.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


folder = pathlib.Path(sys.argv[1])
serve(5055, Traccar)
serve(8081, Refuses)
serve(8443, Traccar, folder / "own")
print("ready", flush=True)
threading.Event().wait()
