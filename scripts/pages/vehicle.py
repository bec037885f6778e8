"""A receiver on TCP, in a vehicle that drives rounds in real time."""
import functools, math, operator, socket, threading, time


def sentence(body):
    return f"${body}*{functools.reduce(operator.xor, body.encode()):02X}\r\n"


def degrees(value, width, letters):
    whole, part = divmod(abs(value), 1)
    return f"{int(whole):0{width}d}{part * 60:07.4f},{letters[0] if value >= 0 else letters[1]}"


class Vehicle(threading.Thread):
    """Five fixes a second for each client that connects."""
    RADIUS, SPEED = 0.004, 14.0

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            while True:
                now = math.floor(time.time() * 5) / 5
                client.sendall(self.epoch(now).encode())
                time.sleep(max(0.0, now + 0.2 - time.time()))
        except OSError:
            client.close()

    def epoch(self, now):
        angle = now * self.SPEED / (self.RADIUS * 111_195)
        # Not quite a circle, so that a picture shows which way is which.
        radius = self.RADIUS * (1 + 0.25 * math.sin(3 * angle))
        latitude = 52.52 + radius * math.cos(angle)
        longitude = 13.405 + radius * math.sin(angle) / math.cos(math.radians(52.52))
        course = (math.degrees(angle) + 90) % 360
        moment = time.gmtime(now)
        clock = time.strftime("%H%M%S", moment) + f".{round(now % 1 * 10) % 10}0"
        place = f"{degrees(latitude, 2, 'NS')},{degrees(longitude, 3, 'EW')}"
        return sentence(f"GNRMC,{clock},A,{place},{self.SPEED / 0.514444:.1f},{course:.1f},{time.strftime('%d%m%y', moment)},,,A") + sentence(
            f"GNGGA,{clock},{place},1,11,0.8,41.0,M,42.0,M,,")
