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
    options = options.parse_args()
    seconds = sorted({second(json.loads(line)) for line in sys.stdin if line.strip()})
    if options.later_than is not None:
        sys.exit(not seconds or seconds[-1] <= options.later_than)
    last = options.none_before - 1
    missing = [at for at in range(seconds[0], last + 1) if at not in set(seconds)]
    if missing:
        print(f"missing: {[at - last for at in missing]} seconds from the edge", file=sys.stderr)
    sys.exit(bool(missing))


main()
