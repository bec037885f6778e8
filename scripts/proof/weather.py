"""What a sink does to its client, by a seeded plan: the same seed gives the same weather at the same second."""

import email.utils
import random
import time

# Name → weight. A kind lasts for one spell of weather.
KINDS = {
    "clear": 12, "500": 1, "503-seconds": 1, "503-date": 1, "503": 1, "429": 1, "413": 1, "415": 0.5, "409": 0.5,
    "poison": 0, "reset": 1, "reset-stored": 1, "close": 1, "close-stored": 1, "half-head": 1, "half-body": 1,
    "half-late": 1, "slow": 0.5, "slow-stored": 0.5, "hang": 0.5, "hang-stored": 0.5, "down": 1, "garbage": 1,
    "late": 0.5, "late-stored": 0.5,
}


class Weather:
    """Spells of one to six seconds."""

    def __init__(self, seed, name, kinds=None, shares=(0.2, 0.5, 1.0)):
        """- shares: of the requests that a spell strikes."""
        self.random = random.Random(f"{seed}/{name}")
        self.kinds, self.shares = kinds or KINDS, shares
        self.until, self.kind, self.share = 0.0, "clear", 0.0

    def at(self, second):
        """Kind and the share of requests that it strikes."""
        while second >= self.until:
            self.until += self.random.uniform(1, 6)
            self.kind = self.random.choices(list(self.kinds), list(self.kinds.values()))[0]
            self.share = self.random.choice(self.shares)
        return self.kind, self.share

    def strikes(self, second):
        """The kind that meets a request now."""
        kind, share = self.at(second)
        return kind if kind != "clear" and self.random.random() < share else "clear"


def reply(status, headers=(), body=b"", clock_error=0.0):
    """Bytes of a whole answer; its Date may be wrong."""
    head = [f"HTTP/1.1 {status} Weather", f"Content-Length: {len(body)}",
            f"Date: {email.utils.formatdate(time.time() + clock_error, usegmt=True)}"]
    head += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
