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
