"""A disk that fails to read, and what must not follow from that: nothing is known of what was not read."""

import json
import random
import shutil
import subprocess
import time

from . import drive
from .daemon import Shim, build_path
from .delivery_cases import case
from .server import Answer

WINDOW = 'commit_window = "500ms"'
BAD_S, RATE = 60, 20


def copies(it):
    return sorted(path.name for path in it.queue.iterdir() if ".corrupt-" in path.name)


def judge_sound(it, but=()):
    """No row is lost, none comes under another number, and the file, which was sound, was not set aside."""
    it.require(not copies(it), f"a sound queue was set aside: {copies(it)}")
    for server in it.servers:
        arrivals = it.ledger.endpoint(server.name)
        twice = arrivals.counts["records"] - len(arrivals.fixes)
        it.require(twice == 0, f"{server.name}: {twice} records came again under another number")
    it.judge(but=but)


@case("14a-one-failed-read", seconds=40, is_short=True)
def one_failed_read(it):
    """One read of a start fails, each in turn: the queue is sound, and stays where it is."""
    server = it.server(script=lambda request: Answer(503))
    it.feed(rate=200, count=600)
    it.start(outbox=WINDOW)
    it.until("all is fed", 30, lambda: it.feeder.is_done)
    it.wait(2)
    it.measured()
    it.kill()
    place = 0
    while True:
        place += 1
        it.shim.fail_read(place)
        it.run()
        it.wait(0.3)
        is_last = it.shim.is_read_due
        it.shim.fail_read(0)
        it.require(not copies(it), f"the read {place} of a start failed, and a sound queue was set aside")
        if is_last or copies(it):
            break
        it.measured()
        it.kill()
    it.note(places=place - 1)
    server.script = lambda request: Answer()
    it.finish()
    judge_sound(it)


def failing(it, per_mille, refused):
    """Reads, writes and flushes fail for a minute.

    - refused: share of the requests that the server answers with 503, so that rows wait on disk.
    """
    draw = random.Random(per_mille)
    it.server(script=lambda request: Answer(503 if draw.random() < refused else 200, delay=0.05))
    it.feed(rate=RATE)
    it.start(outbox=WINDOW)
    it.wait(5)
    it.shim.strike_disk(Shim.EIO_ALL, per_mille)


def fails_and_heals(it, per_mille):
    failing(it, per_mille, refused=0.5)
    it.wait(BAD_S)
    it.shim.strike_disk(Shim.HEALTHY)
    it.note(refused=it.shim.refused)
    it.require(it.shim.refused > 0, "no call was refused")
    it.until("the disk is used again", 90, lambda: not it.status()["queue"].get("disk_error"))
    it.wait(3)
    it.finish()
    judge_sound(it)


def on_disk(it):
    """Numbers of the fixes that the queue of a killed daemon holds."""
    there = it.folder / "there"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir()
    for part in ("", "-wal"):
        path = it.queue / f"outbox.db{part}"
        if path.exists():
            shutil.copyfile(path, there / path.name)
    out = subprocess.run([build_path() / "waypost", "queue", "export", "--format", "jsonl", "--path", there / "outbox.db"],
                         capture_output=True, text=True)
    return {drive.number_of(json.loads(line)["time_ms"]) for line in out.stdout.splitlines()} - {None}


def fails_and_dies(it, per_mille):
    """With kill -9 meanwhile: what was committed on disk arrives."""
    failing(it, per_mille, refused=0.9)
    committed, ends, kills = set(), time.monotonic() + BAD_S, 0
    while time.monotonic() < ends:
        it.wait(7)
        it.measured()
        it.ledger.killed(it.daemon.kill(), it.began)
        committed |= on_disk(it)
        kills += 1
        it.run()
    it.shim.strike_disk(Shim.HEALTHY)
    it.until("the disk is used again", 90, lambda: not it.status()["queue"].get("disk_error"))
    it.wait(3)
    it.finish()
    it.note(kills=kills, committed=len(committed), refused=it.shim.refused)
    arrived = it.ledger.endpoint("main").fixes
    it.require(committed, "nothing was seen on disk")
    it.require(committed <= arrived, f"{len(committed - arrived)} of {len(committed)} committed rows never came: {sorted(committed - arrived)[:8]}")
    it.require(not copies(it), f"a sound queue was set aside: {copies(it)}")


for _share, _words in ((5, "0.5"), (20, "2"), (50, "5")):
    def _lives(it, share=_share):
        fails_and_heals(it, share)
    _lives.__doc__ = f"{_words} % of reads, writes and flushes fail for 60 s, and heal: nothing lost, nothing doubled, nothing set aside."
    case(f"14b-{_share}-per-mille-fail", seconds=110)(_lives)

    def _dies(it, share=_share):
        fails_and_dies(it, share)
    _dies.__doc__ = f"The same with {_words} % and kill -9 each 7 s: every row that was committed on disk arrives."
    case(f"14c-{_share}-per-mille-and-kills", seconds=130)(_dies)
