"""Judges what a collector has, one location a line on standard input, of a receiver with a fix each second."""

import argparse
import json
import sys


def second(location):
    return location["time_ms"] // 1000


def numbers(file):
    return [int(line) for line in open(file)]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--later-than", type=int, help="succeed when the last location is later than this Unix time")
    options.add_argument("--none-before", type=int, help="succeed when no second before this Unix time is missing")
    options.add_argument("--sent", help="succeed when no second in this file is missing, from the first that is there on")
    options.add_argument("--but", type=int, default=0, help="with --sent: but for this number at its end")
    options.add_argument("--after", type=int, help="with --sent: from the second after this one on, whether it is there or not")
    options.add_argument("--until", type=int, help="with --sent: and no later than this")
    options.add_argument("--and-no-other", metavar="FILE", help="with --sent: and there is none that is not in this file")
    options.add_argument("--in-order", action="store_true", help="succeed when each line is later than the one before")
    options = options.parse_args()
    lines = [line for line in sys.stdin if line.strip()]
    received = [second(json.loads(line)) for line in lines]
    seconds = set(received)
    if options.later_than is not None:
        sys.exit(not received or max(seconds) <= options.later_than)
    if options.in_order:
        wrong = [place for place in range(1, len(received)) if received[place] <= received[place - 1]]
        for place in wrong[:3]:
            print("      not in order:", *(line.strip() for line in lines[place - 1:place + 1]), sep="\n        ")
        sys.exit(not received or bool(wrong))
    if not received:
        sys.exit("nothing was received")
    sent = numbers(options.sent) if options.sent else range(min(seconds), options.none_before)
    sent = [at for at in sent if (options.after or 0) < at <= (options.until or at)]
    last = sent[-1] - options.but
    first = min(seconds & set(sent), default=sent[0]) if options.after is None else sent[0]
    missing = [at for at in sent if first <= at and at not in seconds]
    print(f"      {len(seconds)} seconds, missing of {len(sent)} that were sent: {[at - sent[-1] for at in missing][:40]}")
    others = seconds - set(numbers(options.and_no_other)) if options.and_no_other else set()
    for at in sorted(others)[:5]:
        print(f"      never sent: {lines[received.index(at)].strip()}")
    sys.exit(bool(others) or any(at <= last for at in missing))


main()
