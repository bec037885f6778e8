"""Asks the daemon something cheap every 10 ms, from a process of its own, until its input ends: how long was the loop elsewhere?

    pinger.py SOCKET PID

Prints {"requests", "longest_ms", "blocked_ms"}. The second is the longest time from request to reply; the third leaves out what
the main thread of the daemon and this process waited for a processor meanwhile, which other work on the machine costs.
"""

import json
import select
import socket
import sys
import time

PERIOD_S = 0.01
REQUEST = b'{"id":1,"do":"ping"}\n'  # an unknown verb: refused at once
LONGEST_S = 120


class Waits:
    """Nanoseconds that threads were ready to run and did not."""

    def __init__(self, *paths):
        self.files = [open(path, "rb", buffering=0) for path in paths]

    def __call__(self):
        total = 0
        for file in self.files:
            file.seek(0)
            total += int(file.read(100).split()[1])
        return total


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(LONGEST_S)
    client.connect(path)
    return client


def main():
    path, pid = sys.argv[1], int(sys.argv[2])
    waits = Waits(f"/proc/{pid}/task/{pid}/schedstat", "/proc/thread-self/schedstat")
    client, requests, longest, blocked = None, 0, 0.0, 0.0
    while not select.select([sys.stdin], [], [], PERIOD_S)[0]:
        try:
            client = client or connect(path)
            waited, began = waits(), time.monotonic()
            client.sendall(REQUEST)
            reply = client.recv(4096)
            taken = time.monotonic() - began
            if not reply:
                client = None
                continue
            waited = (waits() - waited) / 1e9
        except (OSError, IndexError):
            # It ends, or makes room for another client.
            client = None
            continue
        requests += 1
        longest, blocked = max(longest, taken), max(blocked, taken - waited)
    print(json.dumps({"requests": requests, "longest_ms": round(longest * 1000, 1), "blocked_ms": round(blocked * 1000, 1)}))


if __name__ == "__main__":
    main()
