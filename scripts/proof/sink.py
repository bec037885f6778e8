"""An HTTP endpoint on loopback that keeps the ledger and misbehaves by the weather."""

import email.utils
import random
import socket
import struct
import threading
import time

from . import bodies, drive
from .weather import reply

HEAD_MAX, BODY_MAX = 64 << 10, 32 << 20
PAUSES = (1, 1, 2, 3)
TOO_LARGE_ROWS = 40
LONGEST_SILENCE = 90


class Gone(Exception):
    """The client is no longer there."""


class Sink:
    """Serves one endpoint on a port of its own. What holds a fix that the ledger calls poison is refused with 400.

    - latency: most seconds between storing and the reply, drawn each time.
    - late: seconds after which a late answer comes, more than the client waits.
    - takes_poison: whether it refuses nothing but by the weather.
    """

    def __init__(self, ledger, name, weather=None, port=0, latency=0, late=4, takes_poison=False):
        self.late_after, self.takes_poison = late, takes_poison
        self.ledger, self.name, self.weather, self.latency = ledger, name, weather, latency
        self.random = random.Random(name)
        self.began, self.stopped = time.monotonic(), threading.Event()
        self.bytes_received = 0
        self.connections = 0
        self.listener = self.listening(port)
        self.port = self.listener.getsockname()[1]
        self.acceptor = threading.Thread(target=self.accepting, daemon=True)
        self.acceptor.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.stopped.set()
        self.acceptor.join()
        if self.listener:
            self.listener.close()

    def calm(self):
        """From now on nothing is refused but poison."""
        self.weather = None

    def listening(self, port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        listener.settimeout(0.1)
        return listener

    @property
    def is_down(self):
        return self.weather is not None and self.weather.at(time.monotonic() - self.began)[0] == "down"

    def accepting(self):
        while not self.stopped.is_set():
            if self.is_down:
                if self.listener:
                    self.listener.close()
                    self.listener = None
                    self.ledger.faults["down"] += 1
                time.sleep(0.05)
                continue
            if not self.listener:
                self.listener = self.listening(self.port)
            try:
                connection, _ = self.listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            threading.Thread(target=self.serving, args=(connection, self.ledger.life), daemon=True).start()

    def serving(self, connection, life):
        connection.settimeout(LONGEST_SILENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffered = bytearray()
        try:
            with connection:
                while not self.stopped.is_set() and not self.is_down:
                    head, body = self.request(connection, buffered, life)
                    if not self.answered(connection, head, body, life):
                        return
        except (OSError, Gone):
            pass

    def more(self, connection, buffered):
        piece = connection.recv(1 << 18)
        if not piece:
            raise Gone
        self.bytes_received += len(piece)
        buffered += piece

    def request(self, connection, buffered, life):
        while (end := buffered.find(b"\r\n\r\n")) < 0:
            if len(buffered) > HEAD_MAX:
                raise Gone
            self.more(connection, buffered)
        self.ledger.asked(self.name, life, time.monotonic())
        first, *lines = buffered[:end].decode("latin-1").split("\r\n")
        head = {"": first}
        for line in lines:
            key, _, value = line.partition(":")
            head[key.strip().lower()] = value.strip()
        length = int(head.get("content-length", 0))
        if length > BODY_MAX:
            raise Gone
        while len(buffered) < end + 4 + length:
            self.more(connection, buffered)
        body = bytes(buffered[end + 4:end + 4 + length])
        del buffered[:end + 4 + length]
        return head, body

    def answered(self, connection, head, body, life):
        """- Returns: whether the connection is kept."""
        encoding = head.get("content-encoding", "")
        plain = bodies.inflated(body, encoding)
        try:
            outbox, rows = bodies.rows(plain, head.get("content-type", ""))
        except bodies.BadBody as problem:
            self.ledger.endpoint(self.name).counts["bad bodies"] += 1
            self.ledger.found(f"{self.name}: {problem}")
            connection.sendall(reply(400))
            return True
        batch_id = head.get("idempotency-key", "").strip('"')
        if not self.ledger.identified(self.name, batch_id, plain):
            connection.sendall(reply(422))
            return True
        poison = {number for _, time_ms in rows if (number := drive.number_of(time_ms)) in self.ledger.poison}
        if poison and not self.takes_poison:
            self.ledger.faults["poison"] += 1
            self.ledger.refused(self.name, life, batch_id, outbox, rows, poison, not encoding)
            connection.sendall(reply(400, body=b'{"error":"poison"}'))
            return True
        kind = self.weather.strikes(time.monotonic() - self.began) if self.weather else "clear"
        refusal = self.refusal(kind, head, rows)
        if refusal:
            self.ledger.faults[kind] += 1
            if kind == "413":
                self.ledger.too_large(self.name, outbox, rows)
            answer, pause = refusal
            connection.sendall(answer)
            if pause:
                self.ledger.asked_to_wait(self.name, life, pause, time.monotonic())
            return True
        if kind in BROKEN:
            self.ledger.faults[kind] += 1
            if kind not in ("reset", "close", "slow", "hang", "late"):
                self.ledger.stored(self.name, life, batch_id, outbox, rows)
            BROKEN[kind](self, connection)
            return False
        self.ledger.stored(self.name, life, batch_id, outbox, rows)
        if self.latency:
            self.stopped.wait(self.random.uniform(0, self.latency))
        if kind == "garbage":
            self.ledger.faults[kind] += 1
            # Not what the profile promises: the batch comes again.
            connection.sendall(reply(200, body=bytes(self.random.randrange(256) for _ in range(300))))
            return True
        connection.sendall(reply(200))
        self.ledger.confirmed(self.name, life, batch_id, outbox, rows, not encoding)
        return True

    def refusal(self, kind, head, rows):
        """The answer, and how long it asks to wait; nil when `kind` refuses nothing here."""
        pause, clock_error = self.random.choice(PAUSES), self.random.choice((0, 0, 3e8, -3e8))
        if kind == "413":
            return (reply(413), 0) if len(rows) > TOO_LARGE_ROWS else None
        if kind == "415":
            return (reply(415), 0) if head.get("content-encoding") == "gzip" else None
        if kind == "503-date":
            # Date and Retry-After by the same wrong clock. The difference is in whole seconds: the answer's own is cut off.
            at = time.time() + clock_error
            until = email.utils.formatdate(int(at) + pause, usegmt=True)
            return reply(503, [("Retry-After", until)], clock_error=clock_error), pause
        if kind in ("429", "503-seconds"):
            return reply(int(kind[:3]), [("Retry-After", pause)], clock_error=clock_error), pause
        if kind in ("500", "503", "409"):
            return reply(int(kind)), 0
        return None

    # Broken replies

    def reset(self, connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def closed(self, connection):
        connection.shutdown(socket.SHUT_RDWR)

    def half_head(self, connection):
        connection.sendall(reply(200)[:self.random.randrange(1, 12)])

    def half_body(self, connection):
        connection.sendall(reply(200, body=b"x" * 40)[:-20])

    def half_late(self, connection):
        """A part of the head, silence, then the end."""
        connection.sendall(reply(200)[:20])
        self.stopped.wait(0.5)
        self.reset(connection)

    def slow(self, connection, status=500):
        for byte in reply(status, body=b"x" * 40):
            connection.sendall(bytes([byte]))
            if self.stopped.wait(1):
                return

    def slow_success(self, connection):
        self.slow(connection, 200)

    def late(self, connection, status=503):
        """A whole answer to a client that has given the attempt up, or was killed meanwhile."""
        self.stopped.wait(self.late_after)
        connection.sendall(reply(status))

    def late_success(self, connection):
        self.late(connection, 200)

    def silent(self, connection):
        connection.recv(1)


BROKEN = {
    "reset": Sink.reset, "reset-stored": Sink.reset, "close": Sink.closed, "close-stored": Sink.closed,
    "half-head": Sink.half_head, "half-body": Sink.half_body, "half-late": Sink.half_late,
    "slow": Sink.slow, "slow-stored": Sink.slow_success, "hang": Sink.silent, "hang-stored": Sink.silent,
    "late": Sink.late, "late-stored": Sink.late_success,
}
