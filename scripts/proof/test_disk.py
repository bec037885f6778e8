"""The simulated disk must answer as the real VFS does: one script of errors through both.

    cd scripts && python3 -m unittest proof.test_disk
"""

import ctypes
import json
import mmap
import os
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

from .daemon import Shim

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KINDS = ("read", "write", "flush")
PREPARATION = ["PRAGMA page_size = 512", "PRAGMA journal_mode = WAL", "CREATE TABLE t (id INTEGER PRIMARY KEY, a)",
               *(f"INSERT INTO t VALUES ({number}, zeroblob(300))" for number in range(30))]
SCRIPT = ["PRAGMA user_version", "PRAGMA synchronous = FULL", "SELECT max(id) FROM t", "SELECT count(*), sum(length(a)) FROM t",
          "BEGIN IMMEDIATE", "INSERT INTO t VALUES (100, zeroblob(900))", "COMMIT", "PRAGMA wal_checkpoint(RESTART)",
          "DELETE FROM t WHERE id < 5", "SELECT count(*) FROM t"]


class RealDisk:
    """In a process with the shim preloaded."""

    def __init__(self, folder):
        self.path, self.vfs = f"{folder}/q", ""
        file = open(os.environ["WAYPOST_SHIM_CONTROL"], "r+b")
        self.control = mmap.mmap(file.fileno(), 0)

    def begin(self):
        for part in ("", "-wal", "-shm"):
            pathlib.Path(self.path + part).unlink(missing_ok=True)

    def fail(self, kind, number):
        struct.pack_into("q", self.control, 24 + 8 * KINDS.index(kind), number)

    def is_due(self, kind):
        return struct.unpack_from("q", self.control, 24 + 8 * KINDS.index(kind))[0] > 0


class SimulatedDisk:
    def __init__(self, folder):
        library = f"{folder}/simdisk.so"
        source = ROOT / "Sources/CSimDisk"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-I{source}/include", "-o", library, source / "simdisk.c", "-lsqlite3"], check=True)
        self.library, self.path, self.vfs = ctypes.CDLL(library), "/sim/q", "&vfs=simdisk"
        self.library.simdisk_get.restype = ctypes.c_int64

    def begin(self):
        self.library.simdisk_reset(ctypes.c_uint64(1))

    def fail(self, kind, number):
        self.library.simdisk_set(9 + KINDS.index(kind), ctypes.c_int64(number))

    def is_due(self, kind):
        return self.library.simdisk_get(9 + KINDS.index(kind)) > 0


def connected(disk):
    return sqlite3.connect(f"file:{disk.path}?mode=rwc{disk.vfs}", uri=True, isolation_level=None)


def results(disk):
    """The extended code of each statement, for each read, write and flush that fails once."""
    found = []
    for kind in KINDS:
        number = 0
        while True:
            number += 1
            disk.begin()
            # Stays open, so that the log is not copied back.
            keeper = connected(disk)
            for statement in PREPARATION:
                keeper.execute(statement).fetchall()
            disk.fail(kind, number)
            codes, connection = [], None
            try:
                connection = connected(disk)
            except sqlite3.Error as error:
                codes.append(error.sqlite_errorcode)
            for statement in SCRIPT if connection else ():
                try:
                    connection.execute(statement).fetchall()
                    codes.append(0)
                except sqlite3.Error as error:
                    codes.append(error.sqlite_errorcode)
            is_due = disk.is_due(kind)
            disk.fail(kind, 0)
            for each in (connection, keeper):
                if each:
                    each.close()
            if is_due:
                break
            found.append([kind, number, codes])
    return found


class DiskTests(unittest.TestCase):
    def test_answers_as_the_real_one(self):
        with tempfile.TemporaryDirectory() as folder:
            disk = pathlib.Path(folder) / "disk"
            disk.mkdir()
            shim = Shim(pathlib.Path(folder), disk)
            out = subprocess.run([sys.executable, "-m", "proof.test_disk", disk], cwd=ROOT / "scripts", check=True,
                                 capture_output=True, text=True, env={**os.environ, **shim.environment})
            real = json.loads(out.stdout)
            simulated = results(SimulatedDisk(folder))
        self.assertGreater(len(real), 40)
        self.assertIn(11, real[5][2])
        self.maxDiff = None
        for kind in KINDS:
            self.assertEqual(*([each for each in found if each[0] == kind] for found in (real, simulated)))


if __name__ == "__main__":
    print(json.dumps(results(RealDisk(sys.argv[1]))))
