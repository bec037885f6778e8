"""Writes the epochs of tools.receiver to a device, one a second, until killed: feed.py DEVICE"""

import os
import sys
import time

from lab.tools.receiver import epoch


def main():
    device = os.open(sys.argv[1], os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    begin = at = int(time.time())
    while True:
        time.sleep(max(0.0, at - time.time()))
        try:
            os.write(device, epoch(at, begin, 15.0))
        except BlockingIOError:
            pass
        at += 1


main()
