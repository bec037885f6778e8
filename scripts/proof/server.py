"""A server whose answers a script writes, one request at a time."""

import select
import socket
import ssl
import subprocess
import threading
import time

from . import bodies
from .sink import Sink
from .weather import reply


class Answer:
    """What one request gets.

    - takes: which of its rows are stored; None = all of them with a 2xx, else none.
    - delay: seconds before the answer.
    - retry_after: seconds.
    - cut: bytes of the body that are not sent before the connection is closed.
    - drip: seconds before each byte of the body.
    - more: another `Answer` that follows a moment later although there was no request for it.
    """

    MOMENT = 0.3

    def __init__(self, status=200, headers=(), body=b"", takes=None, delay=0, retry_after=None, cut=0, drip=0, more=None):
        self.status, self.body, self.delay, self.retry_after, self.cut = status, body, delay, retry_after, cut
        self.headers = [*headers] if retry_after is None else [*headers, ("Retry-After", retry_after)]
        self.takes, self.drip, self.more = takes, drip, more

    @property
    def whole(self):
        return reply(self.status, self.headers, self.body)

    def stored(self, rows):
        if self.takes is not None:
            return self.takes(rows)
        return rows if 200 <= self.status < 300 else []


class Request:
    """- path: of the URL. - rows: (seq, time in ms) of each record; none where it is no upload. - at: monotonic seconds."""

    def __init__(self, head, rows, at):
        self.path = head[""].split(" ")[1] if head.get("") else ""
        self.batch, self.rows, self.at = head.get("idempotency-key", "").strip('"'), rows, at
        self.ended = None


class Server(Sink):
    """- script: gives the `Answer` to a `Request`; None = 200."""

    def __init__(self, ledger, name, script=None):
        self.script = script or (lambda request: Answer())
        self.guard = threading.Lock()
        self.open = {}  # connection → request
        self.most_open = 0
        self.requests = []
        super().__init__(ledger, name)

    @staticmethod
    def is_gone(connection):
        try:
            return bool(select.select([connection], [], [], 0)[0]) and connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def opened(self, connection, request):
        """The request that the client gave up has ended before the next one begins."""
        with self.guard:
            self.open = {other: its for other, its in self.open.items() if not self.is_gone(other)}
            self.open[connection] = request
            self.most_open = max(self.most_open, len(self.open))
            self.requests.append(request)

    def answered(self, connection, head, body, life):
        plain = bodies.inflated(body, head.get("content-encoding", ""))
        try:
            outbox, rows = bodies.rows(plain, head.get("content-type", ""))
        except bodies.BadBody:
            outbox, rows = "", []
        request = Request(head, rows, time.monotonic())
        self.opened(connection, request)
        try:
            if rows and not self.ledger.identified(self.name, request.batch, plain):
                connection.sendall(reply(422))
                return True
            return self.respond(connection, request, outbox, self.script(request), life)
        finally:
            request.ended = time.monotonic()
            with self.guard:
                self.open.pop(connection, None)

    def respond(self, connection, request, outbox, answer, life):
        taken = answer.stored(request.rows)
        if taken:
            self.ledger.stored(self.name, life, request.batch, outbox, taken)
        until = time.monotonic() + answer.delay
        while time.monotonic() < until and not self.stopped.is_set() and not self.is_gone(connection):
            time.sleep(0.01)
        if self.is_gone(connection):
            return False
        whole = answer.whole
        if taken and not answer.cut:
            # Before the last byte leaves, so that no next request overtakes it.
            self.ledger.confirmed(self.name, life, request.batch, outbox, taken)
        if answer.retry_after:
            self.ledger.asked_to_wait(self.name, life, answer.retry_after, time.monotonic())
        if answer.drip:
            head = len(whole) - len(answer.body)
            connection.sendall(whole[:head])
            for byte in answer.body:
                time.sleep(answer.drip)
                if self.stopped.is_set() or self.is_gone(connection):
                    return False
                connection.sendall(bytes([byte]))
            return True
        connection.sendall(whole[:len(whole) - answer.cut])
        if answer.more:
            time.sleep(Answer.MOMENT)
            connection.sendall(answer.more.whole)
        return not answer.cut


class TLSServer(Server):
    """The same over TLS. - certificate: the file with its own, which is its authority too."""

    def __init__(self, ledger, name, folder, script=None):
        self.certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.certificate],
            check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        super().__init__(ledger, name, script)

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def serving(self, connection, life):
        try:
            super().serving(self.context.wrap_socket(connection, server_side=True), life)
        except OSError:
            pass


def in_turn(*answers, then=None):
    """A script: these answers, one for each upload, and then always `then`."""
    left = list(answers)

    def script(request):
        return left.pop(0) if left and request.rows else then or Answer()
    return script


def silent_port():
    """A port on loopback that takes connections and never answers; close it to end that."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    return listener, listener.getsockname()[1]
