"""A link between two Ethernet devices that delays, throttles, drops and forgets, frame by frame."""

import ctypes
import fcntl
import heapq
import random
import select
import socket
import struct
import threading
import time

ETH_P_ALL, PACKET_OUTGOING, SIOCETHTOOL = 3, 4, 0x8946
IPV4, TCP, UDP = 0x0800, 6, 17
SYN, ACK = 0x02, 0x10


def without_offload(device):
    """Frames of such a device are complete, and none is longer than its MTU."""
    with socket.socket() as probe:
        # ETHTOOL_STXCSUM, STSO, SGSO, SGRO
        for command in (0x17, 0x1F, 0x24, 0x2C):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(probe, SIOCETHTOOL, struct.pack("16sP16x", device.encode(), ctypes.addressof(value)))


class Wire(threading.Thread):
    """Carries frames between two devices of this network namespace: the vehicle's side first.

    - is_up: else every frame is lost, and nobody is told.
    - delay: seconds in each direction.
    - rate: bits a second in each direction; nil = as fast as it goes. At most 20 frames wait.
    - loss: share of the frames that are lost.
    - forgets: seconds without a packet after which a translation of addresses is gone, silently; None = never.
    - largest: bytes of the largest IP packet that passes; longer ones are lost without a word.
    - longest_sent: the same for what the vehicle sends alone.
    - drops: numbers of protocols of which nothing passes.
    - source: the only address of the vehicle that passes; None = any.
    """

    WAITING_MAX = 20

    def __init__(self, vehicle, server):
        super().__init__(daemon=True)
        self.ends = []
        for device in (vehicle, server):
            end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            end.bind((device, 0))
            self.ends.append(end)
        self.is_up, self.delay, self.rate, self.loss = True, 0.0, None, 0.0
        self.forgets = self.largest = self.longest_sent = self.source = None
        self.drops = ()
        self.flows = {}
        self.waiting, self.count = [], 0
        self.free_at = [0.0, 0.0]
        self.queued = [0, 0]
        self.bytes, self.packets = [0, 0], [0, 0]
        self.random = random.Random(1)
        self.start()

    def run(self):
        while True:
            timeout = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
            readable, _, _ = select.select(self.ends, [], [], timeout)
            now = time.monotonic()
            for direction, end in enumerate(self.ends):
                if end not in readable:
                    continue
                frame, address = end.recvfrom(65536)
                if address[2] != PACKET_OUTGOING:
                    self.take(direction, frame, now)
            while self.waiting and self.waiting[0][0] <= now:
                _, _, direction, frame = heapq.heappop(self.waiting)
                self.queued[direction] -= 1
                if self.is_up:
                    try:
                        self.ends[1 - direction].send(frame)
                    except OSError:
                        # The device is down.
                        pass

    def take(self, direction, frame, now):
        self.bytes[direction] += len(frame) - 14
        self.packets[direction] += 1
        if not self.is_up or self.loss and self.random.random() < self.loss:
            return
        if direction == 0 and self.longest_sent and len(frame) - 14 > self.longest_sent:
            return
        if self.largest and len(frame) - 14 > self.largest or not self.passes(direction, frame, now):
            return
        begin = max(now, self.free_at[direction])
        if self.rate:
            if self.queued[direction] >= self.WAITING_MAX:
                return
            begin += len(frame) * 8 / self.rate
            self.free_at[direction] = begin
        self.queued[direction] += 1
        self.count += 1
        heapq.heappush(self.waiting, (begin + self.delay, self.count, direction, frame))

    def passes(self, direction, frame, now):
        """What a carrier does with addresses."""
        if struct.unpack_from("!H", frame, 12)[0] != IPV4:
            return True
        head = (frame[14] & 15) * 4
        protocol, ours, theirs = frame[23], frame[26:30], frame[30:34]
        ports = struct.unpack_from("!HH", frame, 14 + head) if protocol in (TCP, UDP) else (0, 0)
        if direction:
            ours, theirs, ports = theirs, ours, ports[::-1]
        if protocol in self.drops:
            return False
        if self.source and ours != socket.inet_aton(self.source):
            return False
        if not self.forgets:
            return True
        flow = (protocol, ours, theirs, ports)
        seen = self.flows.get(flow)
        begins = direction == 0 and (protocol != TCP or frame[14 + head + 13] & (SYN | ACK) == SYN)
        if not begins and (seen is None or now - seen > self.forgets):
            self.flows.pop(flow, None)
            return False
        self.flows[flow] = now
        return True
