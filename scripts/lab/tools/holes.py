"""Judges what a collector has, one location a line on standard input, of a receiver with a fix each second."""

import argparse
import json
import sys


def second(location):
    return location["time_ms"] // 1000


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--later-than", type=int, help="succeed when the last location is later than this Unix time")
    options.add_argument("--none-before", type=int, help="succeed when no second before this Unix time is missing")
    options.add_argument("--told", help="succeed when no second in this file is missing, from the first location on")
    options.add_argument("--but", type=int, default=0, help="with --told: but for so many at its end")
    options.add_argument("--and-no-other", action="store_true", help="with --told: and there is no other one")
    options.add_argument("--in-order", action="store_true", help="succeed when each line is later than the one before")
    options = options.parse_args()
    received = [second(json.loads(line)) for line in sys.stdin if line.strip()]
    seconds = set(received)
    if options.later_than is not None:
        sys.exit(not received or max(seconds) <= options.later_than)
    if options.in_order:
        sys.exit(not received or any(late <= early for early, late in zip(received, received[1:])))
    if not received:
        sys.exit("nothing was received")
    if options.told:
        told = [int(line) for line in open(options.told)]
        last = told[-1] - options.but
    else:
        last = options.none_before - 1
        told = range(min(seconds), last + 1)
    missing = [at for at in told if min(seconds) <= at and at not in seconds]
    others = seconds - set(told) if options.and_no_other else ()
    print(f"      {len(seconds)} seconds received, missing from the edge: {[at - told[-1] for at in missing][:40]}")
    if others:
        print(f"      never told: {sorted(others)[:10]}")
    sys.exit(bool(others) or any(at <= last for at in missing))


main()
