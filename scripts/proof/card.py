"""A memory card that can be copied as a power cut would leave it: ext4 on a loop device."""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import time

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000


class Unavailable(Exception):
    """What is missing, in words."""


def alone():
    """Gives this process a network and mounts of its own: ports are always free, and mounts end with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        raise Unavailable(f"needs root for a network of its own: {os.strerror(ctypes.get_errno())}")
    if libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) != 0:  # MS_REC | MS_PRIVATE
        raise Unavailable(f"cannot keep mounts to itself: {os.strerror(ctypes.get_errno())}")
    with socket.socket() as any_socket:
        request = struct.pack("16sH14x", b"lo", 1)  # SIOCSIFFLAGS, IFF_UP
        fcntl.ioctl(any_socket, 0x8914, request)


def run(*command):
    out = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if out.returncode != 0:
        raise Unavailable(f"{command[0]}: {out.stderr.strip()}")
    return out.stdout.strip()


def scratch_folder():
    """In memory where that is possible: what is measured is what reaches the loop device, not the disk below it."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


@contextlib.contextmanager
def mounted(image, mount, options="defaults"):
    """- Yields: the name of the loop device."""
    device = run("losetup", "--find", "--show", image)
    try:
        run("mount", "-o", options, device, mount)
        try:
            yield pathlib.Path(device).name
        finally:
            run("umount", mount)
    finally:
        run("losetup", "--detach", device)


@contextlib.contextmanager
def filled(folder):
    """The file system takes nothing more."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
        with contextlib.suppress(OSError):
            os.fsync(file.fileno())
    try:
        yield
    finally:
        filler.unlink()


class Card:
    """A fresh file system, mounted at `folder`/card."""

    def __init__(self, folder, stack, size=48 << 20):
        self.image, self.mount = folder / "card.img", folder / "card"
        self.mount.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-b", "1024", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        # The journal of the file system is committed each second, so that more of its states are met.
        self.device = stack.enter_context(mounted(self.image, self.mount, "commit=1"))

    def writes(self):
        fields = pathlib.Path(f"/sys/block/{self.device}/stat").read_text().split()
        return fields[4], fields[6], fields[8]

    def copy(self, path):
        """What has reached the device at one moment: again, until nothing was written meanwhile."""
        for _ in range(200):
            before = self.writes()
            run("cp", "--sparse=always", self.image, path)
            if before[2] == "0" and self.writes() == before:
                return
            time.sleep(0.005)
        raise Unavailable("the device never rests")


class ReorderingCard:
    """A plain folder, and a journal of what the daemon wrote there, from which it is known what was flushed.

    A copy holds that, and of what was written since, sector by sector, only some. Creation, renaming and removal of files
    count as done at once: SQLite and the daemon flush the folder themselves, and the moment before that is not tried.
    """

    SECTOR = 512

    def __init__(self, folder, random):
        self.mount, self.journal, self.random = folder / "card", folder / "journal", random
        self.mount.mkdir()
        self.journal.touch()
        self.read_to = 0
        self.flushed, self.pending = {}, {}

    def follow(self):
        with open(self.journal, "rb") as file:
            file.seek(self.read_to)
            while len(head := file.read(21)) == 21:
                what, length, offset, count = struct.unpack("<cIqq", head)
                path = file.read(length).decode()
                data = file.read(count) if what in b"wr" else b""
                if len(data) != count and what in b"wr":
                    return
                self.read_to = file.tell()
                self.replay(what, path, offset, data)

    def replay(self, what, path, offset, data):
        if what == b"u":
            self.flushed.pop(path, None)
            self.pending.pop(path, None)
            return
        if what == b"r":
            for files in (self.flushed, self.pending):
                files.pop(data.decode(), None)
                if path in files:
                    files[data.decode()] = files.pop(path)
            return
        content, pending = self.flushed.setdefault(path, bytearray()), self.pending.setdefault(path, [])
        if what == b"w":
            pending.append((offset, data))
        elif what == b"t":
            del content[offset:]
            content.extend(bytes(max(0, offset - len(content))))
            pending[:] = [(start, part[:max(0, offset - start)]) for start, part in pending if start < offset]
        else:
            for start, part in pending:
                self.put(content, start, part)
            pending.clear()

    @staticmethod
    def put(content, start, part):
        if len(content) < start:
            content.extend(bytes(start - len(content)))
        content[start:start + len(part)] = part

    def copy(self, path):
        self.follow()
        path.mkdir()
        share = self.random.choice((0, 0.2, 0.5, 0.8))
        for name, content in self.flushed.items():
            if name.endswith("-shm"):
                continue
            content = bytearray(content)
            for start, part in self.pending[name]:
                at = 0
                while at < len(part):
                    end = min(len(part), at + self.SECTOR - (start + at) % self.SECTOR)
                    if self.random.random() < share:
                        self.put(content, start + at, part[at:end])
                    at = end
            (path / pathlib.Path(name).name).write_bytes(content)
