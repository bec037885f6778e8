"""A serial receiver on a pseudo-terminal: one epoch a second with the time of this host, on a circle at a steady speed."""

import argparse
import math
import os
import pathlib
import pty
import shutil
import signal
import time
import tty

from proof.drive import checksummed

RADIUS_M = 2000
METRES_PER_DEGREE = 111_195


def epoch(at_s, metres, speed):
    """RMC and GGA of a whole second of Unix time, at this distance in metres along the circle, at a speed in m/s."""
    angle = metres / RADIUS_M
    latitude = 52.5 + RADIUS_M * math.sin(angle) / METRES_PER_DEGREE
    longitude = 13.4 + RADIUS_M * math.cos(angle) / METRES_PER_DEGREE / math.cos(math.radians(52.5))
    place = (
        f"{int(latitude):02d}{latitude % 1 * 60:08.5f},N,{int(longitude):03d}{longitude % 1 * 60:08.5f},E"
    )
    clock = time.gmtime(at_s)
    of_day = time.strftime("%H%M%S.00", clock)
    course = -math.degrees(angle) % 360
    return checksummed(
        f"GPRMC,{of_day},A,{place},{speed / 0.514444:.2f},{course:.1f},{time.strftime('%d%m%y', clock)},,,A"
    ) + checksummed(f"GPGGA,{of_day},{place},1,09,0.9,34.0,M,44.0,M,,")


def seconds(sent=None):
    """Whole seconds of Unix time as each comes, from the time of this host on; from there it is a clock of its own.

    - sent: a file that each of them is written to once the caller is done with it.
    """
    file = open(sent, "a", buffering=1) if sent else None
    begin = int(time.time()) + 1
    offset = time.time() - time.monotonic()
    at = begin
    while True:
        time.sleep(max(0.0, at - offset - time.monotonic()))
        yield at, begin
        if file:
            file.write(f"{at}\n")
        at += 1


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sent", help="file to which each second that was sent is appended")
    options.add_argument("--link", type=pathlib.Path, required=True, help="the name of the device")
    options.add_argument("--speed", type=float, default=15.0, help="m/s")
    options = options.parse_args()

    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    name = os.ttyname(theirs)
    # A pseudo-terminal has no access control list, in which the udev rule would name the daemon.
    shutil.chown(name, "waypost", "dialout")
    os.chmod(name, 0o660)
    # Whoever opens the port takes it for himself alone, and that lasts as long as anybody holds it.
    os.close(theirs)
    options.link.parent.mkdir(exist_ok=True)
    options.link.unlink(missing_ok=True)
    options.link.symlink_to(name)
    signal.signal(signal.SIGTERM, lambda *_: (options.link.unlink(missing_ok=True), os._exit(0)))

    for at, begin in seconds(options.sent):
        try:
            os.write(ours, epoch(at, options.speed * (at - begin), options.speed))
        except BlockingIOError:
            pass  # No reader, as at a port that is not open.


if __name__ == "__main__":
    main()
