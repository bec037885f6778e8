"""The oracle's memory: what was fed, what arrived, and whether that keeps the promise."""

import bisect
import collections
import hashlib
import threading

from . import drive


class Life:
    """One process of the daemon."""

    def __init__(self, number):
        self.number, self.fed, self.killed_at, self.bad_disk_since = number, [], None, None


class Arrivals:
    """What one endpoint got."""

    def __init__(self):
        self.counts = collections.Counter()
        self.of_seq = {}  # (outbox, seq) → number of the fix
        self.confirmed_in = {}  # (outbox, seq) → life in which a whole 2xx was sent; absent when the reply broke
        self.highest = {}  # outbox → seq
        self.newest_fix = {}  # outbox → number
        self.fixes = set()
        self.batches = {}  # id → digest of its body
        self.repeated = collections.defaultdict(set)  # life → ids confirmed to an earlier one
        self.not_before = None  # (monotonic, life)


class Ledger:
    """Thread-safe. Times are monotonic seconds."""

    def __init__(self, commit_window, slack=1.0):
        """- slack: for what lies between a receiver and the daemon, in seconds."""
        self.lock = threading.RLock()
        self.commit_window, self.slack = commit_window, slack
        self.lives, self.endpoints = [], {}
        self.faults = collections.Counter()
        self.findings = []  # a line each, of what must not be
        self.quarantinable = set()
        self.newest_only = None  # where old records are dropped on purpose: so many of the newest must be there

    def __getstate__(self):
        return {**self.__dict__, "lock": None}

    def __setstate__(self, state):
        self.__dict__.update(state, lock=threading.RLock())

    def endpoint(self, name):
        with self.lock:
            return self.endpoints.setdefault(name, Arrivals())

    def found(self, what):
        if len(self.findings) < 200:
            self.findings.append(what)

    # What happens to the daemon

    def life_began(self):
        with self.lock:
            self.lives.append(Life(len(self.lives)))

    def fed(self, number, at):
        self.lives[-1].fed.append((number, at))

    def killed(self, at, bad_disk_since=None):
        """- bad_disk_since: rows since then had no disk to go to."""
        with self.lock:
            self.lives[-1].killed_at, self.lives[-1].bad_disk_since = at, bad_disk_since

    @property
    def life(self):
        return len(self.lives) - 1

    # What arrives

    def asked(self, name, life, at):
        """A request head came in."""
        with self.lock:
            arrivals = self.endpoint(name)
            arrivals.counts["requests"] += 1
            if arrivals.not_before:
                until, of_life = arrivals.not_before
                if of_life == life and at < until - 0.02:
                    arrivals.counts["early requests"] += 1
                    self.found(f"{name}: request {until - at:.2f} s before Retry-After was over, life {life}")
                elif at >= until:
                    arrivals.not_before = None

    def asked_to_wait(self, name, life, seconds, at):
        with self.lock:
            self.endpoint(name).not_before = (at + seconds, life)

    def identified(self, name, batch_id, body):
        """Whether an id still names the bytes that it named first; `body` is not compressed."""
        with self.lock:
            arrivals = self.endpoint(name)
            digest = hashlib.sha256(body).digest()
            known = arrivals.batches.setdefault(batch_id, digest)
            if known == digest:
                return True
            arrivals.counts["id mismatches"] += 1
            self.found(f"{name}: {batch_id} came back with other bytes")
            return False

    def stored(self, name, life, batch_id, outbox, rows):
        """Takes the rows of a batch; the reply is still to come."""
        with self.lock:
            arrivals = self.endpoint(name)
            counts = arrivals.counts
            counts["batches stored"] += 1
            twice, explained = 0, 0
            for seq, time_ms in rows:
                number, key = drive.number_of(time_ms), (outbox, seq)
                if number is None or not self.was_fed(number):
                    counts["never fed"] += 1
                    self.found(f"{name}: {batch_id}: seq {seq} has time {time_ms}, which was never fed")
                    continue
                if key in arrivals.of_seq:
                    twice += 1
                    if arrivals.of_seq[key] != number:
                        counts["keys of another record"] += 1
                        self.found(f"{name}: {batch_id}: seq {seq} was fix {arrivals.of_seq[key]}, is fix {number}")
                    confirmed = arrivals.confirmed_in.get(key)
                    if confirmed is None:
                        explained += 1
                    elif confirmed < life:
                        arrivals.repeated[life].add(batch_id)
                        explained += 1
                    else:
                        self.found(f"{name}: {batch_id}: seq {seq} again in life {life}, which had been told 2xx")
                    continue
                arrivals.of_seq[key] = number
                arrivals.fixes.add(number)
                counts["records"] += 1
                if seq < arrivals.highest.get(outbox, -1):
                    counts["inversions"] += 1
                    self.found(f"{name}: {batch_id}: seq {seq} after {arrivals.highest[outbox]}")
                arrivals.highest[outbox] = max(seq, arrivals.highest.get(outbox, -1))
                if number < arrivals.newest_fix.get(outbox, -1):
                    counts["inversions of time"] += 1
                arrivals.newest_fix[outbox] = max(number, arrivals.newest_fix.get(outbox, -1))
            counts["duplicates explained"] += explained
            counts["duplicates unexplained"] += twice - explained

    def confirmed(self, name, life, outbox, rows):
        """The whole of a 2xx was sent."""
        with self.lock:
            arrivals = self.endpoint(name)
            for seq, _ in rows:
                arrivals.confirmed_in.setdefault((outbox, seq), life)

    def was_fed(self, number):
        return any(life.fed and life.fed[0][0] <= number <= life.fed[-1][0] for life in reversed(self.lives))

    # The judgement

    def missing(self, fixes):
        """Counts of what is not among `fixes`, life by life.

        A kill may cost what was fed in the commit window before it (and since the disk went bad), and nothing else: what
        survives of a life is a beginning of it.
        """
        counts = collections.Counter()
        for life in self.lives:
            if not life.fed:
                continue
            numbers = [number for number, _ in life.fed]
            gone = [index for index, number in enumerate(numbers)
                    if number not in fixes and number not in self.quarantinable]
            if not gone:
                continue
            last = next((index for index in range(len(numbers) - 1, -1, -1) if numbers[index] in fixes), -1)
            if self.newest_only:
                gone = [index for index in gone if index > last - self.newest_only]
            horizon = float("inf")
            if life.killed_at is not None:
                horizon = life.killed_at - self.commit_window - self.slack
                if life.bad_disk_since is not None:
                    horizon = min(horizon, life.bad_disk_since - self.commit_window - self.slack)
            first_allowed = bisect.bisect_left([at for _, at in life.fed], horizon)
            beyond = [index for index in gone if index < first_allowed]
            holes = [index for index in gone if index < last]
            counts["lost"] += len(gone)
            counts["lost beyond the window"] += len(beyond)
            counts["holes"] += len(holes)
            if beyond or holes:
                first = (beyond or holes)[0]
                at = "not killed" if life.killed_at is None else f"{life.killed_at - life.fed[first][1]:.2f} s before the kill"
                self.found(f"life {life.number}: {len(beyond)} lost beyond the window, {len(holes)} holes; "
                           f"first fix {numbers[first]} of {numbers[0]}–{numbers[-1]}, {at}")
        return counts

    def report(self):
        """Counts by endpoint, of what was asked for and of what must be zero."""
        with self.lock:
            report = {}
            for name, arrivals in sorted(self.endpoints.items()):
                counts = collections.Counter(arrivals.counts)
                counts.update(self.missing(arrivals.fixes))
                counts["batches repeated after a kill, at most"] = max(map(len, arrivals.repeated.values()), default=0)
                counts["batches repeated after a kill, in all"] = sum(map(len, arrivals.repeated.values()))
                report[name] = counts
            return report


# What a report must not hold, and the most of it.
LIMITS = {
    "lost beyond the window": 0, "holes": 0, "inversions": 0, "inversions of time": 0, "id mismatches": 0,
    "keys of another record": 0, "early requests": 0, "never fed": 0, "duplicates unexplained": 0,
    "batches repeated after a kill, at most": 1, "bad bodies": 0,
}


def broken_limits(report):
    return [f"{name}: {what} {counts[what]}, at most {limit} allowed"
            for name, counts in report.items() for what, limit in LIMITS.items() if counts[what] > limit]
