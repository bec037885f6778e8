"""Writes the epochs of tools.receiver to a device, one a second, until killed: feed.py DEVICE"""

import os
import sys

from lab.tools.receiver import epoch, seconds

SPEED = 15.0


def main():
    device = os.open(sys.argv[1], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    for at, begin in seconds():
        try:
            os.write(device, epoch(at, SPEED * (at - begin), SPEED))
        except BlockingIOError:
            pass


main()
