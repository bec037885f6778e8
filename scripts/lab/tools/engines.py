"""Engines behind MQTT, each with what docs/engines.md says, while its processes are killed."""

import asyncio
import collections
import contextlib
import datetime
import json
import math
import multiprocessing
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from live import rig
from lab.tools import consumer

LOCATIONS = int(os.environ.get("ENGINES_LOCATIONS", "20000"))
failures = 0


def ok(what, condition, detail=""):
    global failures
    print(f"{'ok   ' if condition else 'FAIL '} {what}{'' if condition else f': {detail}'}", flush=True)
    failures += not condition


def note(text):
    print(f"      {text}", flush=True)


class Process:
    """A server with its log; killing it kills all that it started."""

    def __init__(self, folder, name, command, environment=(), user=None):
        self.command, self.environment, self.user = list(map(str, command)), os.environ | dict(environment), user
        self.log = folder / f"{name}.log"
        self.start()

    def start(self):
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                self.command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=self.environment, user=self.user,
                group=self.user, extra_groups=[] if self.user else None, start_new_session=True, cwd="/")

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False).stdout


def need(what, condition, process):
    if not condition:
        raise RuntimeError(f"{what}: {process.log.read_text()[-2000:]}")


class RabbitMQ:
    """Three nodes on this host."""

    program = pathlib.Path("/usr/lib/rabbitmq/bin")

    def __init__(self, folder, stack):
        self.folder, self.names = folder, [f"n{number}@localhost" for number in (1, 2, 3)]
        self.epmd = rig.free_port()
        stack.callback(Process(folder, "epmd", ["epmd", "-port", self.epmd]).kill)
        self.amqp, self.mqtt = [rig.free_port() for _ in self.names], [rig.free_port() for _ in self.names]
        (folder / "plugins").write_text("[rabbitmq_mqtt].\n")
        (folder / ".erlang.cookie").write_text("OFTHELABONLY")
        (folder / ".erlang.cookie").chmod(0o400)
        self.nodes = []
        for index, name in enumerate(self.names):
            self.configure(index)
            node = Process(folder, name, [self.program / "rabbitmq-server"], self.environment(index))
            stack.callback(node.kill)
            self.nodes.append(node)
            need(f"{name} does not start", rig.within(90, lambda: rig.listens(self.mqtt[index])), node)
        need("no cluster", rig.within(60, lambda: len(self.status()) == 3), self.nodes[0])

    def configure(self, index):
        peers = "".join(f"cluster_formation.classic_config.nodes.{number} = {name}\n" for number, name in enumerate(self.names, 1))
        (self.folder / f"n{index}.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.amqp[index]}\nmqtt.listeners.tcp.1 = 127.0.0.1:{self.mqtt[index]}\n"
            f"cluster_formation.peer_discovery_backend = classic_config\n{peers}log.console = true\nlog.file = false\n")

    def environment(self, index):
        return {"RABBITMQ_NODENAME": self.names[index], "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
                "RABBITMQ_LOG_BASE": str(self.folder), "RABBITMQ_CONFIG_FILE": str(self.folder / f"n{index}.conf"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"), "RABBITMQ_CONF_ENV_FILE": "/dev/null",
                "RABBITMQ_DIST_PORT": str(rig.free_port()), "ERL_EPMD_PORT": str(self.epmd), "HOME": str(self.folder)}

    def control(self, *arguments, index=0):
        return subprocess.run([self.program / "rabbitmqctl", "-q", "-n", self.names[index], "--formatter", "json", *arguments],
                              env=os.environ | self.environment(index), capture_output=True, text=True, timeout=60, check=False).stdout

    def status(self, index=0):
        with contextlib.suppress(ValueError, KeyError):
            return json.loads(self.control("cluster_status", index=index))["running_nodes"]
        return []

    def leader(self, queue, index=0):
        """The place of the node that leads this queue."""
        for each in json.loads(self.control("list_queues", "name", "leader", index=index)):
            if each["name"] == queue:
                return self.names.index(each["leader"])
        raise RuntimeError(f"no queue {queue}")

    def channel(self):
        import pika
        parameters = [pika.ConnectionParameters("127.0.0.1", port) for port in self.amqp]
        return pika.BlockingConnection(parameters).channel()

    def bind(self, queue):
        """The recipe."""
        channel = self.channel()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
        channel.queue_bind(queue, "amq.topic", "fleet.#")
        channel.connection.close()

    def payloads(self, queue):
        """All that is in it."""
        channel = self.channel()
        found, last = [], None
        for method, _, payload in channel.consume(queue, inactivity_timeout=5):
            if not method:
                break
            last = method.delivery_tag
            found.append(payload)
            if len(found) % 500 == 0:
                channel.basic_ack(last, multiple=True)
        if last:
            channel.basic_ack(last, multiple=True)
        channel.connection.close()
        return found


class Trial:
    """A daemon with a queue of locations for one broker, and what became of them."""

    def __init__(self, folder, port, device, count=LOCATIONS):
        self.device, folder = device, folder / device
        folder.mkdir()
        source = f'kind = "file"\npath = "{rig.log(folder / "drive.nmea", count)}"\nplayback = "max"\nfollow = true'
        self.daemon = rig.Daemon(folder, f"mqtt://127.0.0.1:{port}", source,
                                 'publish_rate = "engine"\nbatch_size = 500\nbatch_window = "1s"\ntimeout = "10s"', device=device)
        self.silence = self.took = self.accepted = 0
        self.endpoint = {}

    def run(self, happenings=(), patience=400):
        """Until all is sent. A happening is a part of the locations after which something is done."""
        self.daemon.start()
        try:
            self.watch(happenings, patience)
        finally:
            self.daemon.stop()
        return self

    def watch(self, happenings, patience):
        todo, began, last, heard = collections.deque(happenings), time.monotonic(), 0, time.monotonic()
        if not rig.within(60, lambda: self.daemon.status().get("source", {}).get("fixes", 0) > 0):
            raise RuntimeError(f"the daemon reads nothing: {self.daemon.said()}")
        while time.monotonic() - began < patience:
            status = self.daemon.status()
            endpoint = (status.get("endpoints") or [{}])[0]
            accepted, waiting = endpoint.get("acked", 0), endpoint.get("waiting", 1)
            if accepted > last:
                self.silence = max(self.silence, time.monotonic() - heard)
                last, heard = accepted, time.monotonic()
            if todo and accepted >= todo[0][0] * (accepted + waiting):
                threading.Thread(target=todo.popleft()[1], daemon=True).start()
            if not waiting and not todo and accepted:
                break
            time.sleep(0.1)
        self.took = time.monotonic() - began
        self.accepted, self.endpoint = accepted, endpoint

    def verdict(self, payloads):
        """Missing and repeated among the payloads of this device."""
        ids = collections.Counter()
        for payload in payloads:
            if payload.startswith(b"{") and (record := json.loads(payload))["device"] == self.device:
                ids[record["id"]] += 1
        return self.accepted - len(ids), sum(ids.values()) - len(ids)


def killed(process, seconds=6):
    """Killed at once, and started again after a while."""
    process.kill()
    time.sleep(seconds)
    process.start()


def rabbitmq(folder, stack):
    """RabbitMQ, three nodes, killed"""
    cluster = RabbitMQ(folder, stack)
    note(f"rabbitmq-server {version_of('rabbitmq-server')}")
    wrong = Trial(folder, cluster.mqtt[0], "unbound", count=2000).run()
    ok("without a queue everything is confirmed all the same", wrong.accepted > 1900 and not wrong.endpoint.get("waiting"), wrong.endpoint)
    cluster.bind("store")
    found = cluster.payloads("store")
    ok("and gone: a queue that is bound afterwards has none of it", not found, len(found))
    drained(folder, cluster, lambda: cluster.payloads("store"), "drive", 724, ())
    leader = cluster.leader("store")
    # The device is at another node than the queue's leader.
    port = next(index for index in range(3) if index != leader)
    note(f"the queue's leader is {cluster.names[leader]}, the device is at {cluster.names[port]}")
    drained(folder, cluster, lambda: cluster.payloads("store"), "van-7", LOCATIONS, [
        (0.2, lambda: killed(cluster.nodes[leader])), (0.6, lambda: killed(cluster.nodes[port]))], port)
    stored_in_postgresql(folder, stack, cluster.mqtt[0], ["rabbitmq", "store", *(f"127.0.0.1:{port}" for port in cluster.amqp)])


def drained(folder, cluster, payloads, device, count, happenings, port=0):
    trial = Trial(folder, cluster.mqtt[port], device, count).run(happenings)
    ok(f"{device}: everything that waits is accepted", trial.accepted and not trial.endpoint.get("waiting"), trial.endpoint)
    missing, repeated = trial.verdict(payloads())
    note(f"{trial.accepted} accepted in {trial.took:.0f} s, {missing} missing, {repeated} repeated, longest silence {trial.silence:.1f} s")
    ok(f"{device}: every accepted location is in the queue", missing == 0 and trial.accepted > 0.9 * min(count, LOCATIONS), missing)


class PostgreSQL:
    def __init__(self, folder, stack):
        import pwd
        self.data, self.port = folder / "postgresql", rig.free_port()
        binaries = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        self.user = pwd.getpwnam("postgres")
        self.data.mkdir()
        for each in (folder, folder.parent):
            each.chmod(0o755)
        os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
        subprocess.run([binaries / "initdb", "-D", self.data, "-A", "trust", "-E", "UTF8", "--locale", "C"], check=True, user="postgres",
                       group="postgres", extra_groups=[], stdout=subprocess.DEVNULL, cwd="/")
        command = [binaries / "postgres", "-D", self.data, "-p", self.port, "-k", self.data, "-h", "127.0.0.1"]
        server = Process(folder, "postgresql-server", command, user="postgres")
        stack.callback(server.kill)
        self.database = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        need("postgres does not start", rig.within(30, lambda: rig.listens(self.port)), server)
        time.sleep(1)
        self.do("CREATE EXTENSION postgis")

    def do(self, query, fetch=lambda cursor: None, **values):
        import psycopg2
        with contextlib.closing(psycopg2.connect(self.database)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(query, values)
            return fetch(cursor)

    def one(self, query, **values):
        return self.do(query, lambda cursor: cursor.fetchone(), **values)

    def all(self, query, **values):
        return self.do(query, lambda cursor: cursor.fetchall(), **values)


def stored_in_postgresql(folder, stack, port, arguments):
    """The consumer, killed again and again while a device publishes."""
    server = PostgreSQL(folder, stack)
    note(f"PostgreSQL {server.one('SHOW server_version')[0]}")
    program = Process(folder, "consumer", [sys.executable, consumer.__file__, server.database, *arguments])
    stack.callback(lambda: program.kill())
    stop, kills, dice = threading.Event(), [], random.Random(1)

    def strike():
        while not stop.wait(dice.uniform(0.5, 2)):
            program.kill()
            kills.append(1)
            program.start()

    striker = threading.Thread(target=strike, daemon=True)
    striker.start()
    trial = Trial(folder, port, "van-8", LOCATIONS).run()
    stop.set()
    striker.join()
    rig.within(60, lambda: server.one("SELECT count(*) FROM locations")[0] >= trial.accepted, 0.5)
    rows, ids = server.one("SELECT count(*), count(DISTINCT id) FROM locations WHERE device = 'van-8'")
    note(f"consumer killed {len(kills)} times, {trial.accepted} accepted, {rows} rows, {ids} ids")
    ok("each location is in the table once", rows == ids == trial.accepted and kills, (rows, ids, trial.accepted))
    ok("nothing else came", server.one("SELECT count(*) FROM not_locations")[0] == 0, server.one("SELECT * FROM not_locations"))
    program.kill()


class NATS:
    """Three nodes on this host; each is told of the others."""

    def __init__(self, folder, stack):
        self.clients, self.routes, self.mqtt = ([rig.free_port() for _ in range(3)] for _ in range(3))
        self.nodes = []
        for index in range(3):
            configuration = folder / f"nats{index}.conf"
            configuration.write_text(
                f"server_name: n{index}\nlisten: 127.0.0.1:{self.clients[index]}\njetstream {{ store_dir: {folder}/nats{index} }}\n"
                f"mqtt {{ listen: 127.0.0.1:{self.mqtt[index]} }}\n"
                f"cluster {{ name: lab, listen: 127.0.0.1:{self.routes[index]}, routes: ["
                + ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes) + "] }\n")
            node = Process(folder, f"nats{index}", ["nats-server", "-c", configuration])
            stack.callback(node.kill)
            self.nodes.append(node)
        for port, node in zip(self.mqtt, self.nodes):
            need("nats-server does not start", rig.within(30, lambda port=port: rig.listens(port)), node)

    @property
    def urls(self):
        return [f"nats://127.0.0.1:{port}" for port in self.clients]

    def asked(self, question):
        """What an async function of a connection returns."""
        import nats as library

        async def silently(_):
            pass

        async def run():
            # A node may be away.
            connection = await library.connect(self.urls, error_cb=silently)
            try:
                return await question(connection)
            finally:
                await connection.close()
        return asyncio.run(run())

    def make_streams(self):
        """The first client of MQTT makes the streams of the gateway."""
        from paho.mqtt import client as paho
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        connected = threading.Event()
        client.on_connect = lambda *_: connected.set()

        def try_once():
            with contextlib.suppress(OSError):
                client.connect("127.0.0.1", self.mqtt[0])
                client.loop_start()
                found = connected.wait(5)
                client.disconnect()
                client.loop_stop()
                return found
        if not rig.within(60, try_once, 1):
            raise RuntimeError("the MQTT gateway of NATS does not answer")

    def make_consumer(self, durable):
        """The recipe."""
        from nats.js import api

        async def make(connection):
            await connection.jetstream().add_consumer("$MQTT_msgs", api.ConsumerConfig(
                durable_name=durable, filter_subject="$MQTT.msgs.fleet.>", ack_policy=api.AckPolicy.EXPLICIT, max_ack_pending=10_000))
        self.asked(make)

    def make_stream(self, name):
        """What looks like a recipe: a stream of one's own."""
        async def make(connection):
            await connection.jetstream().add_stream(name=name, subjects=["fleet.>"], num_replicas=3)
        self.asked(make)

    def leader(self, stream, durable=None):
        async def look(connection):
            context = connection.jetstream()
            info = await (context.consumer_info(stream, durable) if durable else context.stream_info(stream))
            return int(info.cluster.leader[1:])
        return self.asked(look)

    def leads_elsewhere(self, stream, index):
        """Whether another node than this one leads the stream, which is asked for if not."""
        if self.leader(stream) != index:
            return True
        self.asked(lambda connection: connection.request(f"$JS.API.STREAM.LEADER.STEPDOWN.{stream}", b"", timeout=5))
        return False

    def payloads(self, stream, durable):
        """All that waits for a consumer, which is confirmed."""
        async def fetch(connection):
            subscription = await connection.jetstream().pull_subscribe_bind(durable, stream)
            found = []
            while True:
                try:
                    messages = await subscription.fetch(500, timeout=5)
                except (TimeoutError, asyncio.TimeoutError):
                    # A consumer without a leader is silent as well.
                    with contextlib.suppress(Exception):
                        state = await connection.jetstream().consumer_info(stream, durable)
                        if not state.num_pending and not state.num_ack_pending:
                            return found
                    continue
                for each in messages:
                    found.append(each.data)
                    await each.ack()
        return self.asked(fetch)


def nats(folder, stack):
    """NATS JetStream, three nodes, killed"""
    cluster = NATS(folder, stack)
    note(f"nats-server {version_of('nats-server')}")
    cluster.make_streams()
    none = Trial(folder, cluster.mqtt[0], "no-consumer", count=2000).run()
    cluster.make_consumer("store")
    found = [each for each in cluster.payloads("$MQTT_msgs", "store") if each.startswith(b"{")]
    ok("without a consumer everything is confirmed, and gone", none.accepted > 1900 and not found, (none.accepted, len(found)))
    drained(folder, cluster, lambda: cluster.payloads("$MQTT_msgs", "store"), "drive", 724, ())
    leader = cluster.leader("$MQTT_msgs")
    port = next(index for index in range(3) if index != leader)
    note(f"the stream's leader is n{leader}, the device is at n{port}")
    drained(folder, cluster, lambda: cluster.payloads("$MQTT_msgs", "store"), "van-7", LOCATIONS, [
        (0.2, lambda: killed(cluster.nodes[leader])), (0.6, lambda: killed(cluster.nodes[port]))], port)
    stored_in_postgresql(folder, stack, cluster.mqtt[0], ["nats", "store", *cluster.urls])
    own_stream(folder, cluster)


def own_stream(folder, cluster):
    """The wrong set-up: the confirmation says nothing about a stream of one's own."""
    from nats.js import api
    cluster.make_stream("own")

    async def make(connection):
        await connection.jetstream().add_consumer("own", api.ConsumerConfig(durable_name="own", ack_policy=api.AckPolicy.EXPLICIT))
    cluster.asked(make)
    # The gateway's own stream goes on while that one has no leader.
    port = cluster.leader("$MQTT_msgs")
    if not rig.within(60, lambda: cluster.leads_elsewhere("own", port), 1):
        raise RuntimeError("both streams have the same leader")
    trial = Trial(folder, cluster.mqtt[port], "van-9", LOCATIONS).run([(0.2, lambda: killed(cluster.nodes[cluster.leader("own")]))])
    missing, repeated = trial.verdict(cluster.payloads("own", "own"))
    note(f"a stream of one's own: {trial.accepted} accepted, {missing} missing, {repeated} repeated")
    ok("a stream of one's own on fleet.> loses what was confirmed", missing > 0, missing)


VANS, FIRST_MS, STEP_MS = 100, 1_700_000_000_123, 10_000


def drive(number):
    """Time, latitude and longitude of a location: each van goes round a circle of its own."""
    van, step = number % VANS, number // VANS
    angle = van + step * 0.03
    return (FIRST_MS + STEP_MS * step, round(52.5 + 0.01 * (van // 10) + 0.03 * math.sin(angle), 7),
            round(13.3 + 0.015 * (van % 10) + 0.05 * math.cos(angle), 7))


def location(number):
    time_ms, lat, lon = drive(number)
    return json.dumps({
        "id": f"691fdcc0-2836-8fc1-bef1-{number:012x}", "device": f"van-{number % VANS}", "outbox": "7f3a91c2", "seq": number,
        "location": {"lat": lat, "lon": lon}, "timeStamp": time_ms / 1000, "time_ms": time_ms,
        "accuracy": 4.5, "speed": 12.3, "bearing": 271.0, "altitude": 34.1, "trackable": "van-7", "satellites": 9, "fix_mode": "3d",
        "boot_id": "5d0f1c6ab2e84f0e9d0a7b3c4e5f6071", "moving": True, "reason": "displacement", "odometer": 15230.4 + number}).encode()


# In docs/engines.md.
WHO_WAS_THERE = """
    SELECT device, min(time), max(time) FROM locations
    WHERE time >= %(since)s AND time < %(until)s AND ST_DWithin(place, ST_MakePoint(%(lon)s, %(lat)s)::geography, 500)
    GROUP BY device ORDER BY min(time)"""


def metres(lat, lon, other_lat, other_lon):
    """On the ellipsoid, exact enough for a kilometre."""
    middle = math.radians((lat + other_lat) / 2)
    flat = 1 - 0.00669437999 * math.sin(middle) ** 2
    return math.hypot(math.radians(other_lat - lat) * 6378137 * (1 - 0.00669437999) / flat ** 1.5,
                      math.radians(other_lon - lon) * 6378137 * math.cos(middle) / flat ** 0.5)


def who_was_there(server, count):
    """The question that such data is kept for, answered by the database and by every location."""
    moment = lambda time_ms: datetime.datetime.fromtimestamp(time_ms / 1000, datetime.timezone.utc)
    lat, lon = 52.53, 13.41
    # Around midnight: two partitions.
    since, until = (datetime.datetime(2023, 11, 14, 23, 40, tzinfo=datetime.timezone.utc) + datetime.timedelta(minutes=each) for each in (0, 45))
    near, doubtful = {}, set()
    for number in range(count):
        time_ms, *place = drive(number)
        distance = metres(lat, lon, *place)
        if since <= moment(time_ms) < until and distance < 501:
            near.setdefault(f"van-{number % VANS}", []).append(moment(time_ms))
            if distance > 499:
                doubtful.add(f"van-{number % VANS}")
    began = time.monotonic()
    found = server.all(WHO_WAS_THERE, since=since, until=until, lat=lat, lon=lon)
    note(f"who was within 500 m in 45 minutes: {len(found)} of {VANS} vans, in {(time.monotonic() - began) * 1000:.0f} ms")
    answer = {device: (first, last) for device, first, last in found}
    expected = {device: (min(times), max(times)) for device, times in near.items()}
    ok("they are those that the locations say", expected.items() - answer.items() <= {(each, expected[each]) for each in doubtful}
       and answer.keys() <= expected.keys() and len(doubtful) < 3 < len(found) < VANS, (answer, expected))
    plan = "\n".join(line for line, in server.all("EXPLAIN" + WHO_WAS_THERE, since=since, until=until, lat=lat, lon=lon))
    ok("and only the index of the two days was looked at", plan.count("_place_idx") == 2 and "Seq Scan" not in plan, plan)


def stored_by(database, payloads, consumers=1):
    """How many a second, by so many consumers at a time."""
    def store(first):
        started.wait()
        for place in range(first * consumer.BATCH, len(payloads), consumers * consumer.BATCH):
            stores[first].add(payloads[place:place + consumer.BATCH])

    stores, started = [consumer.Store(database) for _ in range(consumers)], multiprocessing.Event()
    # Each was forked with its own connection.
    processes = [multiprocessing.Process(target=store, args=(each,)) for each in range(consumers)]
    for each in processes:
        each.start()
    began = time.monotonic()
    started.set()
    for each in processes:
        each.join()
    return len(payloads) / (time.monotonic() - began)


def postgresql(folder, stack):
    """How fast locations are stored, and found again"""
    server = PostgreSQL(folder, stack)
    count = 200_000
    payloads = [location(number) for number in range(count)]
    rates = {}
    for consumers in (1, 2):
        rates[consumers] = stored_by(server.database, payloads, consumers)
        again = stored_by(server.database, payloads, consumers)
        note(f"{consumers} consuming, {consumer.BATCH} in a transaction: {rates[consumers]:,.0f} locations per second, "
             f"{again:,.0f} when all of them are there already")
        rows, ids = server.one("SELECT count(*), count(DISTINCT id) FROM locations")
        ok("each is there once", rows == ids == count, (rows, ids))
        if consumers == 1:
            server.do("TRUNCATE locations")
    ok("20,000 or more are stored per second", max(rates.values()) >= 20_000, rates)
    note(f"PostGIS {server.one('SELECT extversion FROM pg_extension WHERE extname = %(name)s', name='postgis')[0]}")
    server.do("ANALYZE locations")
    who_was_there(server, count)
    consumer.Store(server.database).add([b"offline", b'{"id":1}', payloads[0].replace(b'"lat": 52', b'"lat": "x", "l": 52')])
    ok("what is no location is kept beside them", server.one("SELECT count(*) FROM not_locations")[0] == 3)
    ok("and nothing of it among them", server.one("SELECT count(*) FROM locations")[0] == count)


parts = {each.__name__: each for each in (rabbitmq, nats, postgresql)}


def main():
    # Servers are ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in sys.argv[1:] or parts:
        if name not in parts:
            sys.exit(f"engines: there is no {name}; there are {', '.join(parts)}")
        print(f"# {parts[name].__doc__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="waypost-engines-", ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
            parts[name](pathlib.Path(folder), stack)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
