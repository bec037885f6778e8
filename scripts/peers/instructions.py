"""What a fix costs in instructions: the same job for waypost, for waypost at another commit and for the least in C (floor.c).

RMC at full speed, every fix kept, one sink on loopback, under callgrind without caches, kernel not counted. Two lengths of one
log: the difference divided by the fixes between is a fix. Start and end are those with an empty log and the queue of the run before.
"""

import collections
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from peers import contest
from proof import drive

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GUARD = HERE / "instructions.json"
SHORT, LONG = 2000, 10_000
# Rows that make a commit by themselves: at full speed they, and not the window, end it.
ROWS, BATCH = 1000, 100
SLACK = 0.03

# Libraries by row of the table, the first that matches; what belongs to none is the rest.
PARTS = {"compression": r"/lib(z|deflate)\.", "SQLite": r"/libsqlite3\.", "libc": r"/lib(c|m)\.", "own code": r"/(waypost|floor)$"}
GOALS = {"whole": 36_000, "compression": 6000, "SQLite": 4000, "own code": 20_000, "libc": 4000, "start and end": 30_000_000}


class Unavailable(Exception):
    """What is missing, in words."""


def noisy(number, noise):
    """The sentences of a fix as a receiver gives it: metres of error that change slowly, speed and course that are never twice the same."""
    noise["north"] = 0.95 * noise["north"] + noise["random"].gauss(0, 3e-6)
    noise["east"] = 0.95 * noise["east"] + noise["random"].gauss(0, 4e-6)
    angle = number / 3000
    latitude, longitude = 47 + 0.6 * math.sin(angle) + noise["north"], 8 + 0.88 * math.cos(angle) + noise["east"]
    knots, course = 42.76 + noise["random"].gauss(0, 0.3), (90 - math.degrees(angle) + noise["random"].gauss(0, 0.8)) % 360
    return drive.checksummed(
        f"GPRMC,{number // 3600:02d}{number // 60 % 60:02d}{number % 60:02d}.00,A,{int(latitude):02d}{latitude % 1 * 60:08.5f},N,"
        f"{int(longitude):03d}{longitude % 1 * 60:08.5f},E,{knots:.2f},{course:.1f},{drive.DAYS[0]},,,A")


def journey(count, first=0):
    noise = {"north": 0.0, "east": 0.0, "random": random.Random(1)}
    return b"".join(noisy(number, noise) for number in range(first, first + count))


def floor(folder):
    """The path of the program in C, built."""
    if not shutil.which("cc"):
        raise Unavailable("there is no C compiler (apt-get install gcc)")
    program = pathlib.Path(folder) / "floor"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "floor.c", "-lsqlite3", "-lcurl", "-lz"], check=True)
    return program


@contextlib.contextmanager
def sink():
    """- Yields: the port of one on loopback."""
    process = subprocess.Popen([sys.executable, HERE / "sink.py"], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def by_object(profile):
    """Instructions of each program and library in a file of callgrind."""
    names, costs, current, skips = {}, collections.Counter(), None, False
    with open(profile) as file:
        for line in file:
            if line[:3] == "ob=" or line[:4] == "cob=":
                number, name = re.match(r"c?ob=\((\d+)\)(?: (.*))?", line).groups()
                if name:
                    names[number] = name
                if line[0] == "o":
                    current = number
            elif line.startswith("calls="):
                skips = True  # the next line is the cost of the callee, which is counted there
            elif line[0] in "0123456789+-*":
                if not skips:
                    costs[current] += int(line.split()[1])
                skips = False
    return {names[number]: cost for number, cost in costs.items()}


def ran(command, folder, count, port):
    """Instructions by part of one run to the end of the log, and bytes of its bodies."""
    contest.asked(port, "DELETE")
    profile = folder / "callgrind.out"
    out = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *map(str, command)], capture_output=True, text=True)
    seen = contest.asked(port)
    if out.returncode != 0 or seen["records"] != count or seen["requests"] != count // BATCH or seen["repeated"]:
        raise RuntimeError(f"{command[0]}: status {out.returncode}, {seen}: {out.stderr[-500:]}")
    costs = collections.Counter({"whole": 0})
    for name, cost in by_object(profile).items():
        costs["whole"] += cost
        costs[next((part for part, pattern in PARTS.items() if re.search(pattern, name)), "rest")] += cost
    return costs, seen["bytes"]


def measured(command):
    """Instructions per fix by part, those of start and end, and bytes of a body per fix.

    - Parameter command: the words of one for a folder, a log and a port.
    """
    if not shutil.which("valgrind"):
        raise Unavailable("valgrind is not installed (apt-get install valgrind)")
    runs = []
    with sink() as port:
        for count in (SHORT, LONG):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                (folder / "queue").mkdir()
                log = folder / "log.nmea"
                log.write_bytes(journey(count))
                runs.append(ran(command(folder, log, port), folder, count, port))
                if count == SHORT:
                    log.write_bytes(b"")
                    start, _ = ran(command(folder, log, port), folder, 0, port)
    (few, few_bytes), (many, many_bytes) = runs
    costs = {part: (many[part] - few[part]) / (LONG - SHORT) for part in many}
    costs["start and end"] = start["whole"]
    costs["body"] = (many_bytes - few_bytes) / (LONG - SHORT)
    return costs


def of_waypost(binary):
    return measured(lambda folder, log, port: contest.waypost(binary, folder, log, port))


def of_floor(program, *options):
    return measured(lambda folder, log, port: [
        program, log, folder / "queue/q.db", f"http://127.0.0.1:{port}/waypost", ROWS, BATCH, *options])


def built(commit, out):
    """The release binary of a commit, in a clone of its own that is kept for the next one."""
    clone = out / "against"
    git = ["git", "-C", clone]
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--verify", f"{commit}^{{commit}}"], check=True, capture_output=True, text=True).stdout.strip()
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, clone], check=True)
    subprocess.run([*git, "fetch", "--quiet", "origin", commit], check=True)
    subprocess.run([*git, "checkout", "--quiet", "--force", "--detach", commit], check=True)
    for options in ([], ["--path"]):
        done = subprocess.run([clone / "scripts/build", *options], cwd=clone, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{commit[:8]} does not build: {(done.stdout + done.stderr)[-500:]}")
    return pathlib.Path(done.stdout.strip()) / "waypost"


def commit_name():
    """Of what is measured; "and changes" where the tree has some."""
    name = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    changes = subprocess.run(["git", "-C", ROOT, "status", "--porcelain", "--", "Sources", "Package.swift"], check=True,
                             capture_output=True, text=True).stdout
    return f"{name} and changes" if changes else name


def rows(columns):
    """Lines of a table in Markdown.

    - Parameter columns: by heading.
    """
    yield f"| instructions per fix | {' | '.join(columns)} | goal |"
    yield "| --- " * (len(columns) + 2) + "|"
    for part in ("whole", *PARTS, "rest", "start and end", "body"):
        what = {"whole": part, "body": "bytes of a body per fix", "start and end": "start and end of the process"}.get(part, f"of it {part}")
        goal = f"≤ {figure(part, GOALS[part])}" if part in GOALS else "–"
        yield f"| {what} | {' | '.join(figure(part, costs.get(part, 0)) for costs in columns.values())} | {goal} |"


def figure(part, value):
    if part == "body":
        return f"{value:.1f}"
    return f"{value / 1e6:.1f} M" if part == "start and end" else f"{value / 1e3:.1f} k"


def table(binary, out, against=None):
    columns = {}
    with tempfile.TemporaryDirectory() as folder:
        program = floor(folder)
        columns["floor in C"] = of_floor(program)
        columns["the same with zlib"] = of_floor(program, "--gzip")
    if against:
        columns[against] = of_waypost(built(against, out))
    columns[commit_name()] = of_waypost(binary)
    return list(rows(columns))


def problems(binary):
    """What speaks against this binary: sentences, none when it costs what was checked in."""
    costs, guard = of_waypost(binary), json.loads(GUARD.read_text())
    where = GUARD.relative_to(ROOT)
    for part, limit in guard.items():
        ratio = costs[part] / limit
        print(f"instructions, {part}: {costs[part]:,.0f}, {ratio - 1:+.1%} against {where}")
        if ratio > 1 + SLACK:
            yield (f"{part} costs {ratio - 1:.1%} more than {where} says: make it cheaper, or write {costs[part]:.0f} there and say "
                   "in the commit what it buys")
        elif ratio < 1 - SLACK:
            yield f"{part} costs {1 - ratio:.1%} less than {where} says: write {costs[part]:.0f} there, so that it stays so"
