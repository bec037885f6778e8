"""Fixes that can be distinguished: number n is n seconds after the beginning of the drive, and nothing else has its time."""

import math

# Long before any clock of a test machine: a source with `rollover = "off"` believes it.
START_S = 1_772_409_600  # 2026-03-02T00:00:00Z
DAYS = ["%02d%02d26" % (2 + day if day < 30 else day - 29, 3 if day < 30 else 4) for day in range(60)]
COUNT_MAX = 60 * 86_400


def checksummed(text):
    checksum = 0
    for byte in text.encode():
        checksum ^= byte
    return b"$%s*%02X\r\n" % (text.encode(), checksum)


def epoch(number, days=0):
    """The sentences of fix `number`, on a circle of 66 km at 22 m/s; dated as many days too late."""
    angle = number / 3000
    latitude, longitude = 47 + 0.6 * math.sin(angle), 8 + 0.88 * math.cos(angle)
    day, second = divmod(number, 86_400)
    return checksummed(
        f"GPRMC,{second // 3600:02d}{second // 60 % 60:02d}{second % 60:02d}.00,A,"
        f"{int(latitude):02d}{latitude % 1 * 60:08.5f},N,{int(longitude):03d}{longitude % 1 * 60:08.5f},E,"
        f"42.76,{(90 - math.degrees(angle)) % 360:.1f},{DAYS[day + days]},,,A")


def number_of(time_ms):
    """Which fix has this time; None when no fix has it."""
    second, millisecond = divmod(time_ms, 1000)
    number = second - START_S
    return number if millisecond == 0 and 0 <= number < COUNT_MAX else None
