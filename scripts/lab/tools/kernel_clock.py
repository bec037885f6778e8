"""Prints by how many microseconds the kernel says that the wall clock may be wrong; 16 s and more is "not synchronised"."""

import argparse
import ctypes
import os

# struct timex of 64 bits, little-endian: modes, offset, freq, maxerror and more.
MODES, MAXERROR, WORDS = 0, 3, 26
ADJ_MAXERROR = 4


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--set", type=int, metavar="MICROSECONDS", help="say this to the kernel first; needs root")
    options = options.parse_args()
    state = (ctypes.c_long * WORDS)()
    if options.set is not None:
        state[MODES], state[MAXERROR] = ADJ_MAXERROR, options.set
    if ctypes.CDLL(None, use_errno=True).adjtimex(state) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    print(state[MAXERROR])


if __name__ == "__main__":
    main()
