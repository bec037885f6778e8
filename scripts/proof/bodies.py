"""What a request body holds, in the two shapes of our own."""

import json
import zlib


class BadBody(Exception):
    """Why a body cannot be read."""


def inflated(body, encoding):
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise BadBody(f"Content-Encoding {encoding}")
    try:
        return zlib.decompress(body, 31)
    except zlib.error as error:
        raise BadBody(f"gzip: {error}") from error


def rows(body, content_type):
    """Outbox, and (seq, time in ms) of each record, of a body that is no longer compressed."""
    try:
        top = json.loads(body)
        if content_type.startswith("application/vnd.waypost.compact+json"):
            if top["v"] != 2:
                raise BadBody(f"version {top['v']}")
            times = list(zip(summed(top["seq"]), summed(top["time"])))
            if len(times) != top["n"] or any(len(top[name]) != top["n"] for name in ("seq", "time", "lat", "lon")):
                raise BadBody("columns of different lengths")
        else:
            times = [(record["seq"], record["time_ms"]) for record in top["locations"]]
    except (ValueError, KeyError, TypeError) as error:
        raise BadBody(f"{type(error).__name__}: {error}") from error
    if not times:
        raise BadBody("no record")
    return top["outbox"], times


def summed(column):
    """The first cell is the value, the second the difference to it, each later one the change of the difference."""
    values, difference = column[:1], 0
    for change in column[1:]:
        difference += change
        values.append(values[-1] + difference)
    return values
