#!/usr/bin/env python3
"""A stand-in for the service of the tracking channel, and the real client of that service (PyPI `ably`) on it.

  channel.py record FILE    the real client as publisher, through its whole life; a line for each command and frame
  channel.py watch COMMAND  real clients as viewers of our publisher, which the command starts (PORT in its environment)
"""
import asyncio, itertools, json, os, sys, urllib.parse

import websockets
from ably import AblyRealtime
from ably.types.channeloptions import ChannelOptions
from ably.types.channelmode import ChannelMode

HEARTBEAT, ACK, NACK, CONNECTED, DISCONNECTED, CLOSE, CLOSED, ERROR = 0, 1, 2, 4, 6, 7, 8, 9
ATTACH, ATTACHED, DETACH, DETACHED, PRESENCE, MESSAGE, SYNC, AUTH = 10, 11, 12, 13, 14, 15, 16, 17
ABSENT, PRESENT, ENTER, LEAVE, UPDATE = range(5)
HAS_PRESENCE, RESUMED, MODES = 1 << 0, 1 << 2, 15 << 16
MAY_PRESENCE, MAY_PUBLISH, MAY_SUBSCRIBE, MAY_SEE = 1 << 16, 1 << 17, 1 << 18, 1 << 19
CHANNEL = "tracking:van"
START = 1_700_000_000_000  # of the clock of the service, in ms


class Connection:
    """What the service keeps of a client, over any number of transports."""

    def __init__(self, number, client):
        self.id, self.key, self.client, self.socket = f"conn{number}", f"conn{number}!key{number}", client, None


class Channel:
    def __init__(self):
        self.attached, self.members, self.history, self.ids, self.serial = {}, {}, [], set(), 0


class Service:
    """Faults are set from outside: what is refused, and what is not answered, next."""

    def __init__(self):
        self.connections, self.channels, self.numbers = {}, {}, itertools.count(1)
        self.tokens, self.refuse_resume, self.refuse_message, self.drop_ack = None, False, None, False
        self.seen, self.queries, self.watch = [], [], lambda *_: None

    async def __aenter__(self):
        self.server = await websockets.serve(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, socket):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(socket.request.path).query))
        self.queries.append(query)
        client = query.get("clientId")
        self.watch(client, "opened", query)
        if self.tokens is not None and client == "van" and query.get("accessToken") not in self.tokens:
            await socket.send(json.dumps({"action": ERROR, "error": {"code": 40142, "statusCode": 401, "message": "expired"}}))
            return
        connection, error = await self.connect(query, client)
        connection.socket = socket
        await self.say(connection, {
            "action": CONNECTED, "connectionId": connection.id, "error": error, "connectionDetails": {
                "clientId": client, "connectionKey": connection.key, "maxMessageSize": 65536,
                "maxIdleInterval": 15000, "connectionStateTtl": 120000}})
        heart = asyncio.create_task(self.beat(connection, socket))
        try:
            async for text in socket:
                frame = json.loads(text)
                self.watch(client, "client", frame)
                self.seen.append((client, frame))
                if await self.take(connection, frame):
                    break
        except websockets.ConnectionClosed:
            pass
        finally:
            heart.cancel()

    async def connect(self, query, client):
        key = query.get("resume")
        known = next((each for each in self.connections.values() if key and each.key == key), None)
        if known and not self.refuse_resume:
            return known, None
        self.refuse_resume = False
        if known:
            await self.gone(known)
        connection = Connection(next(self.numbers), client)
        self.connections[connection.id] = connection
        return connection, {"code": 80018, "statusCode": 400, "message": "unable to recover"} if key else None

    async def beat(self, connection, socket):
        while True:
            await asyncio.sleep(5)
            await socket.send(json.dumps({"action": HEARTBEAT}))

    async def say(self, connection, frame):
        frame = {name: value for name, value in frame.items() if value is not None}
        self.watch(connection.client, "server", frame)
        try:
            await connection.socket.send(json.dumps(frame))
        except (websockets.ConnectionClosed, AttributeError):
            pass

    async def take(self, connection, frame):
        action, channel = frame["action"], self.channels.setdefault(frame.get("channel"), Channel())
        if action == CLOSE:
            await self.say(connection, {"action": CLOSED})
            await self.gone(connection)
            return True
        if action == AUTH:
            await self.say(connection, {
                "action": CONNECTED, "connectionId": connection.id,
                "connectionDetails": {"clientId": connection.client, "connectionKey": connection.key}})
        elif action == ATTACH:
            await self.attach(connection, channel, frame)
        elif action == DETACH:
            channel.attached.pop(connection.id, None)
            await self.say(connection, {"action": DETACHED, "channel": frame["channel"]})
        elif action in (MESSAGE, PRESENCE):
            if action == MESSAGE and self.refuse_message:
                error, self.refuse_message = self.refuse_message, None
                await self.say(connection, {"action": NACK, "msgSerial": frame["msgSerial"], "count": 1, "error": error})
                return False
            await (self.message if action == MESSAGE else self.presence)(connection, channel, frame)
            if self.drop_ack and action == MESSAGE and connection.client == "van":
                self.drop_ack = False
                self.watch("van", "do", "cut")
                connection.socket.transport.abort()
                return True
            await self.say(connection, {"action": ACK, "msgSerial": frame["msgSerial"], "count": 1})
        return False

    async def attach(self, connection, channel, frame):
        known = connection.id in channel.attached
        modes = frame.get("flags", 0) & MODES or MODES
        channel.attached[connection.id] = modes
        flags = modes | (HAS_PRESENCE if channel.members else 0) | (RESUMED if known and frame.get("channelSerial") else 0)
        await self.say(connection, {
            "action": ATTACHED, "channel": frame["channel"], "flags": flags, "channelSerial": f"s{channel.serial}"})
        members = list(channel.members.values())
        for start in range(0, len(members), 2):  # in pages of two
            cursor = "" if start + 2 >= len(members) else str(start)
            await self.say(connection, {
                "action": SYNC, "channel": frame["channel"], "channelSerial": f"sync{channel.serial}:{cursor}",
                "presence": [{**each, "action": PRESENT} for each in members[start:start + 2]]})
        rewind = int((frame.get("params") or {}).get("rewind", 0))
        if rewind and not known:
            for message in channel.history[-rewind:]:
                await self.say(connection, message)

    async def message(self, connection, channel, frame):
        fresh = [each for each in frame["messages"] if each.get("id") is None or each["id"] not in channel.ids]
        channel.ids.update(each["id"] for each in fresh if each.get("id"))
        channel.serial += 1
        if fresh:
            outgoing = {"action": MESSAGE, "channel": frame["channel"], "channelSerial": f"s{channel.serial}",
                        "id": f"{connection.id}:{frame['msgSerial']}", "connectionId": connection.id,
                        "timestamp": START + channel.serial, "messages": fresh}
            channel.history.append(outgoing)
            await self.broadcast(channel, outgoing, MAY_SUBSCRIBE)

    async def presence(self, connection, channel, frame):
        channel.serial += 1
        items = []
        for index, item in enumerate(frame["presence"]):
            client = item.get("clientId", connection.client)
            said = {**item, "clientId": client, "connectionId": connection.id,
                    "id": item.get("id") or f"{connection.id}:{frame['msgSerial']}:{index}", "timestamp": START + channel.serial}
            key = f"{connection.id}:{client}"
            if item["action"] == LEAVE:
                channel.members.pop(key, None)
            else:
                channel.members[key] = said
            items.append(said)
        await self.broadcast(channel, {
            "action": PRESENCE, "channel": frame["channel"], "channelSerial": f"s{channel.serial}",
            "id": f"{connection.id}:{frame['msgSerial']}", "connectionId": connection.id, "presence": items}, MAY_SEE)

    async def broadcast(self, channel, frame, mode):
        for id, modes in list(channel.attached.items()):
            if modes & mode and id in self.connections:
                await self.say(self.connections[id], frame)

    def remove(self, connection):
        """-> the leaves that the service makes up: their ids are not of the connection."""
        self.connections.pop(connection.id, None)
        leaves = []
        for name, channel in self.channels.items():
            channel.attached.pop(connection.id, None)
            for key in [key for key, each in channel.members.items() if each["connectionId"] == connection.id]:
                channel.serial += 1
                member = channel.members.pop(key)
                leaves.append((name, {**member, "action": LEAVE, "id": f"made-up:{channel.serial}", "timestamp": START + channel.serial}))
        return leaves

    async def gone(self, connection):
        for name, leave in self.remove(connection):
            await self.broadcast(self.channels[name], {"action": PRESENCE, "channel": name, "presence": [leave]}, MAY_SEE)

    def of(self, client):
        return next(each for each in reversed(list(self.connections.values())) if each.client == client)

    def cut(self, client):
        self.of(client).socket.transport.abort()


class Gate:
    """A network in front of the service that lets requests of HTTP through and, while `blocks`, no WebSocket."""

    def __init__(self, service):
        self.service, self.blocks, self.requests, self.refused = service, True, [], 0

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def serve(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *rest = head.decode().strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
                if headers.get("upgrade", "").lower() == "websocket":
                    return await self.socket(head, reader, writer)
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                status, answer = await self.answer(line.split()[0], urllib.parse.unquote(line.split()[1]), headers, body)
                data = json.dumps(answer).encode()
                writer.write(f"HTTP/1.1 {status} said\r\nContent-Type: application/json\r\n"
                             f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def socket(self, head, reader, writer):
        if self.blocks:
            self.refused += 1
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            return await writer.drain()
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.service.port)
        to_writer.write(head)

        async def pump(source, sink):
            while data := await source.read(65536):
                sink.write(data)
            sink.close()
        await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer), return_exceptions=True)

    async def answer(self, method, target, headers, body):
        """As the service does: https://ably.com/docs/api/rest-api"""
        path, _, query = target.partition("?")
        self.requests.append((method, target, headers, body))
        _, _, name, what = path.split("/")
        channel = self.service.channels.setdefault(name, Channel())
        if (method, what) == ("GET", "presence"):
            return 200, [{**each, "action": PRESENT} for each in channel.members.values()]
        if (method, what) == ("POST", "messages"):
            messages = json.loads(body)
            number = len(self.requests)
            await self.service.message(Connection(f"rest{number}", None), channel, {
                "channel": name, "msgSerial": 0, "messages": messages if isinstance(messages, list) else [messages]})
            return 201, {"channel": name, "messageId": f"m{number}"}
        return 404, {"error": {"code": 40400, "statusCode": 404, "message": "no such path"}}


def client(service, name, **options):
    return AblyRealtime(key="app.key:secret", endpoint=f"127.0.0.1:{service.port}", tls=False, client_id=name,
                        use_binary_protocol=False, **options)


async def until(condition, what, seconds=10):
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise SystemExit(f"channel: waited {seconds} s for {what}")


def publisher(ms):
    return json.dumps({"type": "PUBLISHER", "resolution": {
        "accuracy": "BALANCED", "desiredInterval": ms, "minimumDisplacement": 1.0}}, separators=(",", ":"))


async def record(path):
    lines = []
    async with Service() as service:
        service.watch = lambda name, kind, frame: name == "van" and lines.append({kind: frame})
        waiting = 0.05

        async def do(command, action, **more):
            lines.append({"do": command, **more})
            await action()
            await asyncio.sleep(waiting)  # what the client does by itself afterwards

        viewer = client(service, "viewer")
        theirs = viewer.channels.get(CHANNEL)
        await theirs.presence.enter({"type": "SUBSCRIBER"})
        van = client(service, "van", auto_connect=False, transport_params={"remainPresentFor": "60000"})
        channel = van.channels.get(CHANNEL, ChannelOptions(
            modes=[ChannelMode.PRESENCE, ChannelMode.PUBLISH, ChannelMode.PRESENCE_SUBSCRIBE]))

        async def attach():
            van.connect()
            await channel.attach()
            await channel.presence.enter(publisher(1000))

        async def resume(refused):
            service.refuse_resume = refused
            count = len(service.queries)
            service.cut("van")
            await until(lambda: len(service.queries) > count, "the reconnection of the real client")
            await until(lambda: any(each["clientId"] == "van" for each in service.channels[CHANNEL].members.values()),
                        "its presence")

        async def unanswered():
            service.drop_ack = True
            await publish()

        data = iter(json.dumps({"number": number}) for number in range(9))
        publish = lambda: channel.publish("enhanced", next(data))
        await do("attach", attach, presence=1000)
        await do("publish", publish)
        await do("update", lambda: channel.presence.update(publisher(500)), presence=500)
        await do("publish", publish)
        await do("cut", lambda: resume(False))
        await do("publish", publish)
        await do("publish", unanswered)  # before another connection, of whose member `ably` 3.1.4 does not learn the id
        await do("cut", lambda: resume(True))
        await do("publish", publish)

        async def close():
            await channel.presence.leave(publisher(500))
            await van.close()

        await do("close", close)
        members = [each.client_id for each in await theirs.presence.get()]
        assert members == ["viewer"], members
        await viewer.close()
    with open(path, "w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")


class Viewer:
    """The real client, which watches as viewers do."""

    def __init__(self, service, name, rewind=0):
        self.client = client(service, name)
        self.channel = self.client.channels.get(CHANNEL, ChannelOptions(params={"rewind": str(rewind)} if rewind else None))
        self.messages, self.presence = [], []

    async def watch(self):
        # In this order: what is rewound comes at once.
        await self.channel.subscribe("enhanced", self.message)
        await self.channel.presence.subscribe(self.present)

    def message(self, message):
        assert isinstance(message.data, str), "data is no text"
        update = json.loads(message.data)
        assert set(update) == {"location", "skippedLocations", "intermediateLocations", "type"}, update
        self.messages.append((message.id, [each["properties"]["time"] - 1_700_000_000
                                           for each in update["skippedLocations"] + [update["location"]]]))

    def present(self, item):
        if item.client_id == "van":
            data = json.loads(item.data)
            assert data["type"] == "PUBLISHER", data
            self.presence.append((int(item.action), data["resolution"]["desiredInterval"]))

    async def ask(self, ms):
        data = {"type": "SUBSCRIBER"}
        if ms is not None:
            data["resolution"] = {"accuracy": "MAXIMUM", "desiredInterval": ms, "minimumDisplacement": 2}
        await self.channel.presence.enter(data)

    async def sees(self, count, what):
        await until(lambda: len(self.messages) >= count, f"message {count} ({what}); there are {self.messages}")
        return self.messages[-1]

    async def told(self, *expected):
        await until(lambda: self.presence[-1:] == [expected], f"presence {expected}; there is {self.presence}")


async def watch(command):
    async with Service() as service:
        service.tokens = {"token1"}
        viewer = Viewer(service, "viewer")
        await viewer.watch()
        publisher = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "WAYPOST_LIVE_CHANNEL": str(service.port)},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        try:
            # Until a busy machine has started a test, some time goes by.
            await until(lambda: viewer.presence, "the publisher", 120)
            await asyncio.wait_for(scenario(service, viewer), 60)
            output, _ = await asyncio.wait_for(publisher.communicate(), 20)
        except BaseException:
            publisher.kill()
            output, _ = await publisher.communicate()
            sys.stderr.write(output.decode()[-3000:])
            raise
        if publisher.returncode:
            raise SystemExit("channel: the publisher failed:\n" + output.decode()[-3000:])
        await viewer.client.close()
    print(f"channel: {len(viewer.messages)} messages and {len(viewer.presence)} changes of presence as they should be")


async def scenario(service, viewer):
    await viewer.told(ENTER, 1000)
    assert (await viewer.sees(1, "the first"))[1] == [1, 2], viewer.messages
    await viewer.ask(50)
    await viewer.told(UPDATE, 50)
    assert (await viewer.sees(2, "a viewer asks"))[1] == [3, 4], viewer.messages

    service.drop_ack = True
    await viewer.ask(100)
    await viewer.sees(3, "its answer is lost, and so is the connection")
    confirmed = lambda: [frame["presence"][0] for client, frame in service.seen if client == "van"
                         and frame["action"] == PRESENCE and frame["presence"][0].get("id")]
    await until(lambda: len(confirmed()) == 1, "the member to be confirmed, of which viewers hear nothing new")
    sent = lambda id: sum(frame["action"] == MESSAGE and frame["messages"][0]["id"] == id for _, frame in service.seen)
    await until(lambda: sent("q7-6") == 2, "the same message again")
    assert len(viewer.messages) == 3, viewer.messages

    service.tokens = {"token2"}
    connection = service.of("van")
    await service.say(connection, {"action": DISCONNECTED, "error": {"code": 40142, "statusCode": 401}})
    await until(lambda: service.queries[-1].get("accessToken") == "token2", "another token")
    assert service.queries[-1].get("resume") == connection.key, "the token costs the connection"
    await until(lambda: len(confirmed()) == 2, "the member to be confirmed again")
    assert viewer.presence == [(ENTER, 1000), (UPDATE, 50), (UPDATE, 100)], viewer.presence

    service.refuse_message = {"code": 42911, "statusCode": 429, "message": "too many"}
    await viewer.ask(200)
    await until(lambda: service.refuse_message is None, "a message to refuse")
    await viewer.ask(300)
    assert (await viewer.sees(4, "after a refusal"))[1] == [7, 8, 9, 10], viewer.messages

    service.refuse_resume = True
    service.cut("van")
    await until(lambda: (LEAVE, 300) in viewer.presence, "the old member to leave")
    await viewer.told(ENTER, 300)
    await viewer.ask(400)
    assert (await viewer.sees(5, "on another connection"))[1] == [11, 12], viewer.messages

    late = Viewer(service, "late", rewind=1)
    await late.watch()
    assert (await late.sees(1, "the one before it came"))[1] == [11, 12], late.messages
    members = await late.channel.presence.get()
    assert sorted(each.client_id for each in members) == ["van", "viewer"], members

    await viewer.channel.presence.leave()  # without data, as some libraries do
    await viewer.told(UPDATE, 1000)
    await late.sees(2, "a viewer leaves")
    stop = Viewer(service, "stop")
    await stop.ask(None)
    await viewer.told(LEAVE, 1000)
    await until(lambda: service.seen[-1] == ("van", {"action": CLOSE}), "CLOSE")
    for each in (late, stop):
        await each.client.close()


if __name__ == "__main__":
    if sys.argv[1] == "record":
        asyncio.run(record(sys.argv[2]))
    else:
        asyncio.run(watch(sys.argv[2:]))
