"""What a fix writes to the flash: device bytes and flushes of waypost and of the least in C (floor.c), at three commit windows.

Every fix kept, a request a minute, ext4 with blocks of 1 KiB, each run on a loop device of its own, all side by side. Everything is five
times as fast as at 1 Hz, so that it takes minutes and not a quarter of an hour: the fixes, the windows, the time until a request, and
the journal of the file system (commit=1 instead of its 5 s), which writes the changed inode after a commit. What a commit writes does
not depend on how long the next one is away, and so bytes per fix are those of 1 Hz.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

from peers import contest, instructions
from proof import card

FASTER = 5
# Seconds at 1 Hz, and the goals: bytes per fix.
WINDOWS = {1: 1500, 10: 500, 60: 150}
SETTLING_S, MEASURED_S = 15, 120
WARMING = 6000


def begin_log_anew(queue):
    """Leaves a write-ahead log of full size with next to nothing in it.

    What the quick warming put there would be copied back in the middle of a measurement of few commits. A child that
    does not close the queue does it, because closing removes the log.
    """
    code = ("import os, sqlite3, sys; queue = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "queue.execute('PRAGMA wal_checkpoint(RESTART)').fetchall()\n"
            "queue.execute('CREATE TABLE extra (a)'); queue.execute('DROP TABLE extra'); os._exit(0)")
    subprocess.run([sys.executable, "-c", code, queue], check=True)


class Run:
    """One program on one card."""

    def __init__(self, folder, stack, who, window):
        self.who, self.window, self.folder = who, window, folder
        folder.mkdir()
        self.card = card.Card(folder, stack, size=128 << 20)
        (folder / "queue").symlink_to(self.card.mount)
        self.process = None

    def command(self, binary, program, log, port, is_warming):
        if self.who == "floor":
            rate = [] if is_warming else ["--rate", FASTER]
            window = instructions.ROWS if is_warming else self.window
            return [program, log, self.folder / "queue/q.db", f"http://127.0.0.1:{port}/waypost", window, 60, *rate]
        if is_warming:
            return contest.waypost(binary, self.folder, log, port)
        return contest.waypost(
            binary, self.folder, log, port, f"playback = {FASTER}\nfollow = true",
            f'commit_window = "{self.window * 1000 // FASTER}ms"', f'batch_window = "{60 // FASTER}s"')

    def warm(self, *arguments):
        subprocess.run(list(map(str, self.command(*arguments, True))), check=True, stderr=subprocess.DEVNULL)
        begin_log_anew(self.folder / ("queue/q.db" if self.who == "floor" else "queue/outbox.db"))

    def start(self, *arguments):
        self.process = subprocess.Popen(list(map(str, self.command(*arguments, False))), stderr=subprocess.DEVNULL)

    def end(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=30)


def measured(binary):
    """Bytes per fix and flushes per hour by program and window."""
    if os.geteuid() != 0:
        raise card.Unavailable("needs root for loop devices")
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(card.scratch_folder()))
        port = stack.enter_context(instructions.sink())
        contest.asked(port, "DELETE")
        program = instructions.floor(folder)
        warming, log = folder / "warming.nmea", folder / "log.nmea"
        warming.write_bytes(instructions.journey(WARMING))
        log.write_bytes(instructions.journey(FASTER * (SETTLING_S + MEASURED_S + 60), WARMING))
        runs = [Run(folder / f"{who}-{window}", stack, who, window) for window in WINDOWS for who in ("floor", "waypost")]
        for run in runs:
            run.warm(binary, program, warming, port)
        subprocess.run(["sync"], check=True)
        for run in runs:
            stack.callback(run.end)
            run.start(binary, program, log, port)
        time.sleep(SETTLING_S)
        before = [contest.device(run.card) for run in runs]
        time.sleep(MEASURED_S)
        after = [contest.device(run.card) for run in runs]
        for run in runs:
            if run.process.poll() is not None:
                raise RuntimeError(f"{run.who} at {run.window} s: status {run.process.returncode}")
    fixes = MEASURED_S * FASTER
    return {(run.who, run.window): ((end[0] - begin[0]) / fixes, (end[1] - begin[1]) * 3600 / fixes)
            for run, begin, end in zip(runs, before, after)}


def table(binary):
    figures = measured(binary)
    rows = [f"| window | floor, B per fix | {instructions.commit_name()}, B per fix | goal | flushes per hour: floor | waypost |",
            "| --- | --- | --- | --- | --- | --- |"]
    for window, goal in WINDOWS.items():
        floor, ours = figures["floor", window], figures["waypost", window]
        rows.append(f"| {window} s | {floor[0]:,.0f} | {ours[0]:,.0f} | ≤ {goal:,} | {floor[1]:,.0f} | {ours[1]:,.0f} |")
    return rows
