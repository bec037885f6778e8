#!/usr/bin/env python3
"""The tracker that most people write: NMEA lines into SQLite, batches of a hundred by HTTP, deleted when accepted.

    tracker.py LOG DATABASE URL defaults|wal
"""

import sqlite3
import sys

import pynmea2
import requests

log, path, url, mode = sys.argv[1:]
database = sqlite3.connect(path)
if mode == "wal":
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
database.execute("CREATE TABLE fix (id INTEGER PRIMARY KEY AUTOINCREMENT, t TEXT, lat REAL, lon REAL, v REAL, c REAL)")
session = requests.Session()


def send():
    rows = database.execute("SELECT id, t, lat, lon, v, c FROM fix ORDER BY id LIMIT 100").fetchall()
    if not rows:
        return False
    body = [{"t": t, "lat": lat, "lon": lon, "speed": v, "bearing": c} for _, t, lat, lon, v, c in rows]
    if session.post(url, json=body, timeout=30).status_code == 200:
        database.execute("DELETE FROM fix WHERE id <= ?", (rows[-1][0],))
        database.commit()
    return True


for number, line in enumerate(open(log), 1):
    fix = pynmea2.parse(line.strip())
    database.execute("INSERT INTO fix (t, lat, lon, v, c) VALUES (?, ?, ?, ?, ?)", (
        f"{fix.timestamp:%H%M%S}", fix.latitude, fix.longitude, fix.spd_over_grnd * 0.514444, fix.true_course))
    database.commit()
    if number % 100 == 0:
        send()
while send():
    pass
