"""The oracle's memory: what was fed, what arrived, and whether that keeps the promise."""

import bisect
import collections
import hashlib
import math
import threading

from . import drive

# In the id of a request that holds the newest row alone, ahead of its turn (`fresh_head`).
PREVIEW = "-preview-"
# A row that is alone is refused for good after three times, or as many more as show that the server does not refuse at random, ten
# at most.
ALONE_AGAIN = 9


class Life:
    """One process of the daemon."""

    def __init__(self, number):
        self.number, self.fed, self.killed_at, self.bad_disk_since = number, [], None, None
        self.had_bad_disk = False  # at any time, also if all of it was on disk again at the end


class Refusal:
    """A batch that was refused for its poison, and what it cost to take it apart."""

    def __init__(self, batch_id, outbox, rows, poison):
        """- poison: how many of the rows are refused."""
        self.outbox, self.first, self.last, self.rows, self.poison = outbox, rows[0][0], rows[-1][0], len(rows), poison
        # Its numbers may leap, where it began on the disk and went on in memory; after a kill others lie in between.
        self.seqs = {seq for seq, _ in rows}
        self.ids, self.lives = {batch_id}, set()
        self.again = 0  # requests for a part that was answered before
        self.plain = 0  # those of them that came without compression: one such attempt looks for a server that cannot inflate
        self.alone = 0  # those of them with one row
        self.probes = 0  # rows from behind it
        self.too_large = 0  # parts that were refused for their size

    def holds(self, outbox, rows):
        return outbox == self.outbox and all(seq in self.seqs for seq, _ in rows)

    @property
    def extra_limit(self):
        """Requests beside the first: 2 · ⌈log2 B⌉ + 1 for one poison record, 2k · (⌈log2(B/k)⌉ + 1) + 1 for k."""
        if self.poison == 1:
            return 2 * math.ceil(math.log2(self.rows)) + 1
        return 2 * self.poison * (math.ceil(math.log2(self.rows / self.poison)) + 1) + 1


class Arrivals:
    """What one endpoint got."""

    def __init__(self):
        self.counts = collections.Counter()
        self.of_seq = {}  # (outbox, seq) → number of the fix
        # (outbox, seq) → life in which a whole 2xx was sent, and the batch that it was for; absent when the reply broke
        self.confirmed_in = {}
        self.highest = {}  # outbox → (seq, number of the fix)
        self.newest_fix = {}  # outbox → number
        self.fixes = set()
        self.batches = {}  # id → digest of its body
        # Life → batches that were confirmed to an earlier one and came again. One that is then taken apart counts once.
        self.repeated = collections.defaultdict(set)
        self.not_before = None  # (monotonic, life)
        self.refusals = []
        self.last_refused = None  # the refusal to which the last answered request belonged
        self.previewed_in = {}  # (outbox, seq) → life in which a whole 2xx was sent to it ahead of its turn
        self.refused_rows = collections.defaultdict(set)  # number → each (outbox, seq)
        self.refused_in = collections.defaultdict(set)  # number → lives
        self.quarantined = set()
        self.recent = collections.deque(maxlen=12)  # batches as they came, with their lives


class Ledger:
    """Thread-safe. Times are monotonic seconds."""

    def __init__(self, commit_window, slack=1.0):
        """- slack: for what lies between a receiver and the daemon, in seconds."""
        self.lock = threading.RLock()
        self.commit_window, self.slack = commit_window, slack
        self.lives, self.endpoints = [], {}
        self.faults = collections.Counter()
        self.findings = []  # a line each, of what must not be
        self.poison = set()  # numbers of fixes that are refused
        self.cured = set()  # those that are no longer, and come again when they are asked for
        self.forgotten = set()  # fixes that had no disk to go to when the daemon was killed: what became of them is forgotten
        self.damaged = None  # what must arrive of a queue that was damaged; everything else may be gone
        self.optional = {}  # name of an endpoint that may miss rows → this number of the newest must be there all the same
        self.newest_only = None  # where old records are dropped on purpose: this number of the newest must be there

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
            life = self.lives[-1]
            life.killed_at, life.bad_disk_since = at, bad_disk_since
            if bad_disk_since is not None:
                life.had_bad_disk = True
                self.forgotten.update(number for number, fed_at in life.fed if fed_at >= self.horizon(life))

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

    def refused(self, name, life, batch_id, outbox, rows, poison, is_plain=False):
        """A whole batch, since it holds these fixes; `is_plain`: it came without compression."""
        if PREVIEW in batch_id:
            return  # it comes again in its turn
        with self.lock:
            arrivals = self.endpoint(name)
            bad = [(number, seq) for seq, time_ms in rows if (number := drive.number_of(time_ms)) in poison]
            for number, seq in bad:
                arrivals.refused_rows[number].add((outbox, seq))
                arrivals.refused_in[number].add(life)
            if not self.belongs(arrivals, life, batch_id, outbox, rows, is_plain):
                arrivals.refusals.append(Refusal(batch_id, outbox, rows, len(bad)))
                arrivals.last_refused = arrivals.refusals[-1]
                arrivals.last_refused.lives.add(life)

    def too_large(self, name, outbox, rows):
        with self.lock:
            for refusal in self.endpoint(name).refusals:
                if refusal.holds(outbox, rows):
                    refusal.too_large += 1

    def belongs(self, arrivals, life, batch_id, outbox, rows, is_plain):
        """Counts a request that was answered among those that a refusal costs."""
        for refusal in reversed(arrivals.refusals):
            if refusal.holds(outbox, rows):
                if batch_id in refusal.ids:
                    refusal.again += 1
                    refusal.plain += is_plain
                    refusal.alone += len(rows) == 1
                refusal.ids.add(batch_id)
                refusal.lives.add(life)
                arrivals.last_refused = refusal
                return True
        if (last := arrivals.last_refused) and last.outbox == outbox and len(rows) == 1 and rows[0][0] > last.last:
            last.probes += 1
        arrivals.last_refused = None
        return False

    def listed(self, name, rows):
        """What `waypost quarantine export` has of an endpoint: for each record its time, and whether it is a gap.

        The gap that a start records bears the time of a fix next to it, so that both are refused.
        """
        with self.lock:
            arrivals = self.endpoint(name)
            for time_ms, is_gap in sorted(rows, key=lambda row: row[1]):
                number = drive.number_of(time_ms)
                if number not in self.poison:
                    arrivals.counts["quarantined without cause"] += 1
                    self.found(f"{name}: fix {number} is in quarantine, and no server refused it")
                elif number in arrivals.quarantined and not is_gap:
                    arrivals.counts["quarantined twice"] += 1
                    self.found(f"{name}: fix {number} is twice in quarantine")
                arrivals.quarantined.add(number)
            arrivals.counts["quarantined"] = len(arrivals.quarantined)
            absent = arrivals.refused_rows.keys() - arrivals.quarantined - self.forgotten
            arrivals.counts["refused, not quarantined"] = len(absent)
            if absent:
                self.found(f"{name}: refused and not in quarantine: fixes {sorted(absent)[:8]}")

    def stored(self, name, life, batch_id, outbox, rows):
        """Takes the rows of a batch; the reply is still to come."""
        with self.lock:
            arrivals = self.endpoint(name)
            counts = arrivals.counts
            if PREVIEW in batch_id:
                return self.previewed(name, arrivals, life, batch_id, outbox, rows)
            counts["batches stored"] += 1
            arrivals.recent.append(f"{life}: {batch_id}" + (" (disk)" if self.lives[life].bad_disk_since else ""))
            twice, explained = 0, 0
            for seq, time_ms in rows:
                number, key = drive.number_of(time_ms), (outbox, seq)
                if number in self.cured and key not in arrivals.of_seq:
                    # What a life without a disk had refused, the next one may have stored under another number.
                    is_renumbered = any(self.lives[its].had_bad_disk for its in arrivals.refused_in[number])
                    if key not in arrivals.refused_rows[number] and not is_renumbered:
                        counts["keys of another record"] += 1
                        self.found(f"{name}: {batch_id}: fix {number} comes from quarantine as seq {seq}")
                    arrivals.of_seq[key] = number
                    arrivals.fixes.add(number)
                    counts["brought back from quarantine"] += 1
                    continue
                if number is None or not self.was_fed(number):
                    counts["never fed"] += 1
                    self.found(f"{name}: {batch_id}: seq {seq} has time {time_ms}, which was never fed")
                    continue
                if key in arrivals.of_seq:
                    twice += 1
                    if arrivals.of_seq[key] != number:
                        counts["keys of another record"] += 1
                        self.found(f"{name}: {batch_id}: seq {seq} was fix {arrivals.of_seq[key]}, is fix {number}")
                    confirmed, as_batch = arrivals.confirmed_in.get(key, (None, None))
                    if confirmed is None:
                        explained += 1
                    elif confirmed < life:
                        # While the disk refuses, what was acknowledged is known in memory alone.
                        if self.lives[confirmed].bad_disk_since is None:
                            arrivals.repeated[life].add(as_batch)
                        explained += 1
                    else:
                        self.found(f"{name}: {batch_id}: seq {seq} again in life {life}, which had been answered 2xx")
                    continue
                # What was under way when the damage was met comes again, under new numbers.
                is_repeated = self.damaged is not None and number in arrivals.fixes
                arrivals.of_seq[key] = number
                arrivals.fixes.add(number)
                counts["records"] += 1
                if is_repeated:
                    counts["repeated from a damaged queue"] += 1
                    continue
                highest, its_fix = arrivals.highest.get(outbox, (-1, None))
                if seq < highest and its_fix not in self.forgotten:
                    counts["inversions"] += 1
                    before = "" if counts["inversions"] > 1 else f"; lives and batches: {', '.join(arrivals.recent)}"
                    self.found(f"{name}: {batch_id}: seq {seq} after {highest}{before}")
                elif seq != highest:
                    # Of a life that had no disk the next one knows no numbers: it may give lower ones.
                    arrivals.highest[outbox] = seq, number
                newest = arrivals.newest_fix.get(outbox, -1)
                if number < newest and newest not in self.forgotten:
                    counts["inversions of time"] += 1
                    self.found(f"{name}: {batch_id}: seq {seq} is fix {number}, after {arrivals.newest_fix[outbox]}, life {life}")
                arrivals.newest_fix[outbox] = max(number, arrivals.newest_fix.get(outbox, -1))
            counts["duplicates explained"] += explained
            counts["duplicates unexplained"] += twice - explained

    def previewed(self, name, arrivals, life, batch_id, outbox, rows):
        """The newest row came ahead of its turn: it counts when it comes again in order."""
        arrivals.counts["previews"] += 1
        for seq, time_ms in rows:
            number, key = drive.number_of(time_ms), (outbox, seq)
            if number is None or not self.was_fed(number):
                arrivals.counts["never fed"] += 1
                self.found(f"{name}: {batch_id}: seq {seq} has time {time_ms}, which was never fed")
            before = "sent ahead" if arrivals.previewed_in.get(key) == life else \
                "confirmed" if arrivals.confirmed_in.get(key, (None,))[0] == life else None
            if before:
                arrivals.counts["previewed twice or late"] += 1
                self.found(f"{name}: {batch_id}: seq {seq} was {before} before, in life {life}")

    def confirmed(self, name, life, batch_id, outbox, rows, is_plain=False):
        """The whole of a 2xx was sent."""
        with self.lock:
            arrivals = self.endpoint(name)
            if PREVIEW in batch_id:
                arrivals.previewed_in.update({(outbox, seq): life for seq, _ in rows})
                return
            self.belongs(arrivals, life, batch_id, outbox, rows, is_plain)
            for seq, _ in rows:
                arrivals.confirmed_in.setdefault((outbox, seq), (life, batch_id))

    def was_fed(self, number):
        return any(life.fed and life.fed[0][0] <= number <= life.fed[-1][0] for life in reversed(self.lives))

    # The judgement

    def horizon(self, life):
        """What was fed before this was on disk when a life ended."""
        if life.killed_at is None:
            return float("inf")
        ends = [life.killed_at, life.killed_at if life.bad_disk_since is None else life.bad_disk_since]
        return min(ends) - self.commit_window - self.slack

    def missing_optional(self, name, arrivals):
        """Rows that an endpoint may miss give way oldest first: it has the newest of those that another one has."""
        others = sorted(set().union(*(other.fixes | other.quarantined for its, other in self.endpoints.items() if its != name)))
        there = arrivals.fixes | arrivals.quarantined | self.forgotten
        absent = [number for number in others if number not in there]
        # What a bad disk explains takes its space in the queue as well, once the disk is well again.
        newest = set(others[-self.optional[name]:])
        beyond = [number for number in absent if number in newest]
        if beyond:
            self.found(f"{name}: optional, and misses {len(beyond)} of the newest {self.optional[name]}: {beyond[:8]}")
        return collections.Counter({"given up": len(absent), "lost beyond the window": len(beyond)})

    def missing(self, arrivals):
        """Counts of what an endpoint got neither in its store nor in quarantine, life by life.

        A kill may cost what was fed in the commit window before it (and since the disk went bad), and nothing else: what
        survives of a life is a beginning of it.
        """
        counts, fixes = collections.Counter(), arrivals.fixes | arrivals.quarantined
        if self.damaged is not None:
            counts["lost"] = sum(number not in fixes for life in self.lives for number, _ in life.fed)
            absent = self.damaged - fixes
            counts["readable, not brought back"] = len(absent)
            if absent:
                self.found(f"readable, not brought back: {len(absent)} of {len(self.damaged)}: {sorted(absent)[:8]}")
            return counts
        for life in self.lives:
            if not life.fed:
                continue
            numbers = [number for number, _ in life.fed]
            gone = [index for index, number in enumerate(numbers) if number not in fixes]
            if not gone:
                continue
            last = next((index for index in range(len(numbers) - 1, -1, -1) if numbers[index] in fixes), -1)
            if self.newest_only:
                gone = [index for index in gone if index > last - self.newest_only]
            first_allowed = bisect.bisect_left([at for _, at in life.fed], self.horizon(life))
            beyond = [index for index in gone if index < first_allowed]
            # A refused one that only memory knew went with its place in the quarantine.
            refused = self.forgotten & arrivals.refused_rows.keys()
            holes = [index for index in gone if index < last and numbers[index] not in refused]
            counts["lost"] += len(gone)
            counts["lost beyond the window"] += len(beyond)
            counts["holes"] += len(holes)
            if beyond or holes:
                first = (beyond or holes)[0]
                at = "not killed" if life.killed_at is None else f"{life.killed_at - life.fed[first][1]:.2f} s before the kill"
                self.found(f"life {life.number}: {len(beyond)} lost beyond the window, {len(holes)} holes; "
                           f"first fix {numbers[first]} of {numbers[0]}–{numbers[-1]}, {at}")
        return counts

    def costs(self, name, arrivals):
        """Requests that poison cost.

        A kill may repeat what was under way, and forget what spoke for the endpoint; one while there was no disk forgets
        how far a batch was taken apart, so that all of it is done once more.
        """
        counts = collections.Counter()
        for refusal in arrivals.refusals:
            restarts = len(refusal.lives) - 1
            forgot = sum(life.number in refusal.lives and life.bad_disk_since is not None for life in self.lives)
            once = refusal.extra_limit + 2 * refusal.too_large
            extra, extra_limit = len(refusal.ids) - 1, once + forgot * (1 + once)
            counts["extra requests for poison, at most"] = max(counts["extra requests for poison, at most"], extra)
            over = max(0, extra - extra_limit) \
                + max(0, refusal.again - min(refusal.plain, 1) - min(refusal.alone, ALONE_AGAIN * refusal.poison * (1 + restarts)) - 3 * restarts
                      - forgot * (1 + once)) \
                + max(0, refusal.probes - (1 if refusal.rows > 1 else 3) - 3 * restarts)
            counts["requests for poison beyond the limit"] += over
            if over:
                self.found(f"{name}: {refusal.poison} poison of {refusal.rows} rows from seq {refusal.first}: {extra} extra "
                           f"requests of at most {extra_limit}, {refusal.again} again, {refusal.probes} probes, "
                           f"{restarts} restarts")
        return counts

    def report(self):
        """Counts by endpoint, of what was asked for and of what must be zero."""
        with self.lock:
            report = {}
            for name, arrivals in sorted(self.endpoints.items()):
                counts = collections.Counter(arrivals.counts)
                counts.update(self.missing_optional(name, arrivals) if name in self.optional else self.missing(arrivals))
                counts.update(self.costs(name, arrivals))
                for life, ids in arrivals.repeated.items():
                    if len(ids) > 1:
                        self.found(f"{name}: life {life} repeats more than one batch after a kill: {sorted(ids)[:8]}")
                counts["batches repeated after a kill, at most"] = max(map(len, arrivals.repeated.values()), default=0)
                counts["batches repeated after a kill, in all"] = sum(map(len, arrivals.repeated.values()))
                report[name] = counts
            return report


# What a report must not hold, and the most of it.
LIMITS = {
    "lost beyond the window": 0, "holes": 0, "inversions": 0, "inversions of time": 0, "id mismatches": 0,
    "keys of another record": 0, "early requests": 0, "never fed": 0, "duplicates unexplained": 0,
    "batches repeated after a kill, at most": 1, "bad bodies": 0, "quarantined without cause": 0, "quarantined twice": 0,
    "refused, not quarantined": 0, "previewed twice or late": 0, "requests for poison beyond the limit": 0, "readable, not brought back": 0,
}


def broken_limits(report):
    return [f"{name}: {what} {counts[what]}, at most {limit} allowed"
            for name, counts in report.items() for what, limit in LIMITS.items() if counts[what] > limit]
