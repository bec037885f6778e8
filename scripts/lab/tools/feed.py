"""Writes the epochs of tools.receiver to a device, one a second, until killed: feed.py DEVICE"""

import os
import sys

from lab.tools.receiver import epoch, seconds


def main():
    device = os.open(sys.argv[1], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    for at, begin in seconds():
        try:
            os.write(device, epoch(at, begin, 15.0))
        except BlockingIOError:
            pass


main()
