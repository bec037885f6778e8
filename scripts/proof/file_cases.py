"""What another program may do to the files of the queue under the running daemon, case by case."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import time

from .daemon import Shim
from .delivery_cases import case
from .server import Answer

PARTS = ("", "-wal")


class Files:
    """The files of a queue, and a backup of them that was made while the daemon ran."""

    def __init__(self, it):
        self.it, self.path = it, it.queue / "outbox.db"
        self.backup = it.folder / "backup.db"

    def name(self, part):
        return self.path.with_name(self.path.name + part)

    def of_backup(self, part):
        return self.backup.with_name(self.backup.name + part)

    def back_up(self):
        for part in PARTS:
            shutil.copyfile(self.name(part), self.of_backup(part))

    def remove(self, *parts):
        for part in parts:
            self.name(part).unlink(missing_ok=True)

    def remove_folder(self):
        # In one step: the daemon puts back at once what goes.
        gone = self.it.folder / "gone"
        os.rename(self.it.queue, gone)
        shutil.rmtree(gone)
        self.it.wait(3)
        self.it.queue.mkdir()

    def move_away(self):
        os.rename(self.path, self.it.folder / "away.db")

    def rename_over(self, *parts, content=None):
        for part in parts:
            new = self.it.folder / "new"
            if content is None:
                shutil.copyfile(self.of_backup(part), new)
            else:
                new.write_bytes(content)
            os.rename(new, self.name(part))

    def copy_over(self, *parts):
        for part in parts:
            shutil.copyfile(self.of_backup(part), self.name(part))

    def truncate(self, *parts):
        for part in parts:
            os.truncate(self.name(part), 0)

    def while_read(self, act):
        """A program of SQLite's own is in the middle of reading."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            self.it.until("a reader", 10, lambda: reader.execute("SELECT count(*) FROM segment").fetchone())
            self.it.wait(1.5)
            act()
            self.it.wait(1.5)

    def after_listing(self, act):
        subprocess.run([self.it.daemon.waypost, "queue", "list", "--config", self.it.daemon.config], check=True, capture_output=True)
        act()

    def while_refused(self, act):
        """The disk refuses what is written."""
        self.it.shim.strike_disk(Shim.EIO_WRITES)
        self.it.until("the disk refuses", 20, lambda: self.it.status()["queue"].get("disk_error"))
        act()
        self.it.wait(2)
        self.it.shim.strike_disk(Shim.HEALTHY)


def endure(it, acts, is_drained=False):
    """Under a daemon whose server refuses everything, each of these is done, and it ends and starts again: no row is lost.

    - acts: a word and a function of `Files` for each.
    - is_drained: before each of them the server takes what waits: of a file that is overwritten only what this process has written
      itself can be known.
    """
    server = it.server(script=lambda request: Answer(503))
    it.feed(rate=10)
    it.start()
    files = Files(it)
    it.until("a log", 20, lambda: files.name("-wal").exists() and it.status()["queue"]["queue_depth"] > 20)
    files.back_up()
    for word, act in acts:
        if is_drained:
            server.script = lambda request: Answer()
            it.order({"do": "endpoint", "action": "resume", "endpoint": "main"})
            it.until("drained", 20, lambda: it.status("main")["waiting"] < 20)
            server.script = lambda request: Answer(503)
        it.wait(3)
        act(files)
        it.require(noticed(it), f"{word}: not noticed: {it.status()['queue']}")
        it.wait(1.5)
        # What the daemon has not read when it ends is lost.
        it.feeder.paused.set()
        it.wait(1)
        it.require(it.daemon.end() == 0, f"{word}: the daemon did not end")
        it.daemon.start()
        it.until("an answer", 30, it.answers)
        it.feeder.paused.clear()
    it.finish(within=60)
    # What is left of a file that was overwritten comes back under new numbers.
    it.judge(but=("inversions of time",) if is_drained else ())


def noticed(it, within=70):
    """Whether it says that its files were changed, and that they are whole again."""
    def is_so():
        status = it.status()
        words = [line for line in status["problems"] if "another program" in line]
        return status["queue"].get("files_replaced") and words and not status["queue"].get("disk_error")
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if is_so():
            return True
        it.wait(0.1)
    return False


@case("16a-files-removed", seconds=75)
def files_removed(it):
    """Database, log, lock file and folder are removed or renamed, alone and together."""
    endure(it, [
        ("database", lambda files: files.remove("")),
        ("log", lambda files: files.remove("-wal")),
        ("database and log", lambda files: files.remove("", "-wal")),
        ("all", lambda files: files.remove("", "-wal", "-shm", "-lock")),
        ("folder", Files.remove_folder),
        ("database renamed", Files.move_away)])


@case("16b-files-replaced", seconds=75)
def files_replaced(it):
    """A backup, nothing and garbage are renamed over database and log."""
    endure(it, [
        ("backup over the database", lambda files: files.rename_over("")),
        ("backup over both", lambda files: files.rename_over("", "-wal")),
        ("log of the backup", lambda files: files.rename_over("-wal")),
        ("an empty file", lambda files: files.rename_over("", content=b"")),
        ("garbage", lambda files: files.rename_over("", "-wal", content=bytes(range(1, 256)) * 99))])


@case("16c-files-overwritten", seconds=75)
def files_overwritten(it):
    """A backup is copied over database and log, and both are truncated, under the same names and inodes."""
    endure(it, [
        ("backup over the database", lambda files: files.copy_over("")),
        ("backup over the log", lambda files: files.copy_over("-wal")),
        ("backup over both", lambda files: files.copy_over("", "-wal")),
        ("database truncated", lambda files: files.truncate("")),
        ("log truncated", lambda files: files.truncate("-wal")),
        ("both truncated", lambda files: files.truncate("", "-wal")),
        ("truncated and removed", lambda files: (files.truncate("", "-wal"), files.remove("", "-wal")))], is_drained=True)


@case("16d-files-beside-others", seconds=110)
def files_beside_others(it):
    """The same while a reader has the queue open, after `waypost queue list`, and while the disk refuses."""
    endure(it, [
        ("database, beside a reader", lambda files: files.while_read(lambda: files.remove(""))),
        ("log, beside a reader", lambda files: files.while_read(lambda: files.remove("-wal"))),
        ("backup over both, beside a reader", lambda files: files.while_read(lambda: files.rename_over("", "-wal"))),
        ("both, after a list", lambda files: files.after_listing(lambda: files.remove("", "-wal"))),
        ("both, while the disk refuses", lambda files: files.while_refused(lambda: files.remove("", "-wal"))),
        ("backup, while the disk refuses", lambda files: files.while_refused(lambda: files.rename_over("", "-wal"))),
        ("log, while the disk refuses", lambda files: files.while_refused(lambda: files.remove("-wal"))),
        ("folder, while the disk refuses", lambda files: files.while_refused(files.remove_folder))])


@case("17-two-daemons", seconds=40)
def two_daemons(it):
    """Lock file, then queue and lock file are removed, and a second daemon starts: the two share no queue, and no row is lost."""
    it.server(script=lambda request: Answer(503))
    it.feed(rate=10)
    it.start()
    files = Files(it)
    it.until("rows wait", 20, lambda: it.status()["queue"]["queue_depth"] > 20)
    second = it.folder / "second.toml"
    text = it.daemon.config.read_text().replace("control.sock", "second.sock")
    second.write_text(text.replace(f"port = {it.feeder.port}", "port = 9"))

    def start_second():
        return subprocess.Popen([it.daemon.waypost, "run", "--config", second], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for word in ("the first", "again, after a reader"):
        files.remove("-lock")
        if word != "the first":
            files.after_listing(lambda: None)
        process = start_second()
        try:
            out = process.communicate(timeout=15)[0].decode()
            it.require(process.returncode != 0 and "in use" in out, f"{word}: the second ended with {process.returncode}: {out}")
        except subprocess.TimeoutExpired:
            it.require(False, f"{word}: the second runs beside the first")
            process.kill()
            process.wait()
        it.wait(2)
    # A queue of its own: the first one waits for it to end, and then has both.
    files.remove("", "-wal", "-lock")
    process = start_second()
    it.wait(8)
    it.require(process.poll() is not None or "in use" in (it.status()["queue"].get("disk_error") or ""),
               f"both run: {it.status()['queue']}")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=30)
    it.until("the disk is used again", 90, lambda: not it.status()["queue"].get("disk_error"))
    it.finish(within=60)
    it.judge()
