#!/usr/bin/env python3
"""Stores the locations that waypost published (profile waypost-mqtt) in PostgreSQL, each once. Shown in docs/engines.md.

    consumer.py DATABASE rabbitmq QUEUE HOST:PORT…
    consumer.py DATABASE nats DURABLE URL…

A message is confirmed after the transaction that stored it. Whenever this program dies, at most the same messages come again, and
the key of the table makes that no difference. Needs psycopg2, pika or nats-py, and the extension postgis in the database.
"""

import asyncio
import datetime
import io
import json
import sys
import time
import uuid

import psycopg2

BATCH = 1000
COLUMNS = "device, outbox, seq, time, id, lat, lon, record"
TABLES = """
CREATE TABLE IF NOT EXISTS locations (
    device text NOT NULL, outbox text NOT NULL, seq bigint NOT NULL, time timestamptz NOT NULL,
    id uuid NOT NULL, lat float8 NOT NULL, lon float8 NOT NULL, record jsonb NOT NULL,
    place geography(Point, 4326) GENERATED ALWAYS AS (ST_SetSRID(ST_MakePoint(lon, lat), 4326)::geography) STORED,
    PRIMARY KEY (device, outbox, seq, time)
) PARTITION BY RANGE (time);
CREATE INDEX IF NOT EXISTS locations_place ON locations USING gist (place);
CREATE TABLE IF NOT EXISTS not_locations (received timestamptz DEFAULT now(), reason text, payload bytea);
"""
# COPY is several times as fast as INSERT, but knows no conflicts.
INCOMING = f"CREATE TEMP TABLE incoming ON COMMIT DELETE ROWS AS SELECT {COLUMNS} FROM locations WITH NO DATA"
MOVE = f"INSERT INTO locations ({COLUMNS}) SELECT {COLUMNS} FROM incoming ON CONFLICT DO NOTHING"
ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def row(payload):
    """The time of a location, and its line for COPY. Raises ValueError, KeyError or TypeError for anything else."""
    record = json.loads(payload)
    place = record["location"]
    time_ms, seq = int(record["time_ms"]), int(record["seq"])
    moment = datetime.datetime.fromtimestamp(time_ms / 1000, datetime.timezone.utc)
    if not (-2**63 <= seq < 2**63 and -90 <= place["lat"] <= 90 and -180 <= place["lon"] <= 180) or b"\\u0000" in payload:
        raise ValueError("a value that no location has")
    texts = (str(record["device"]), str(record["outbox"]), str(seq), moment.isoformat(), str(uuid.UUID(record["id"])),
             repr(float(place["lat"])), repr(float(place["lon"])), payload.decode())
    return moment, "\t".join(text.translate(ESCAPES) for text in texts)


class Store:
    def __init__(self, database):
        self.connection = psycopg2.connect(database)
        self.days = set()
        with self.connection, self.connection.cursor() as cursor:
            # Two consumers may start at the same time.
            cursor.execute("SELECT pg_advisory_xact_lock(7)")
            cursor.execute(TABLES)
            cursor.execute(INCOMING)

    def add(self, payloads):
        """Returns when all of them are on the disk, or raises."""
        lines, refused, days = [], [], set()
        for payload in payloads:
            try:
                moment, line = row(payload)
                lines.append(line)
                days.add(moment.date())
            except (ValueError, KeyError, TypeError, OverflowError) as error:
                refused.append((f"{type(error).__name__}: {error}", payload))
        with self.connection, self.connection.cursor() as cursor:
            for day in sorted(days - self.days):
                self.make_partition(cursor, day)
            if lines:
                cursor.copy_expert("COPY incoming FROM STDIN", io.StringIO("\n".join(lines) + "\n"))
                cursor.execute(MOVE)
            for each in refused:
                cursor.execute("INSERT INTO not_locations (reason, payload) VALUES (%s, %s)", each)
        self.days |= days

    def make_partition(self, cursor, day):
        cursor.execute("SELECT pg_advisory_xact_lock(7)")
        cursor.execute(f"CREATE TABLE IF NOT EXISTS locations_{day:%Y%m%d} PARTITION OF locations FOR VALUES FROM "
                       f"('{day} 00:00+00') TO ('{day + datetime.timedelta(1)} 00:00+00')")


def rabbitmq(store, queue, addresses):
    import pika
    hosts = [pika.ConnectionParameters(host, int(port)) for host, port in (each.rsplit(":", 1) for each in addresses)]
    with pika.BlockingConnection(hosts) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=2 * BATCH)
        waiting, last = [], None
        for method, _, payload in channel.consume(queue, inactivity_timeout=0.2):
            if method:
                last = method.delivery_tag
                # `fleet.#` also brings who is online.
                if not method.routing_key.endswith(".status"):
                    waiting.append(payload)
            if last and (len(waiting) >= BATCH or not method):
                store.add(waiting)
                channel.basic_ack(last, multiple=True)
                waiting, last = [], None


def nats(store, durable, addresses):
    asyncio.run(fetch_from_nats(store, durable, addresses))


async def fetch_from_nats(store, durable, addresses):
    import nats
    connection = await nats.connect(addresses, max_reconnect_attempts=-1)
    subscription = await connection.jetstream().pull_subscribe_bind(durable, "$MQTT_msgs")
    while True:
        try:
            messages = await subscription.fetch(BATCH, timeout=1)
        except (asyncio.TimeoutError, nats.errors.TimeoutError):
            continue
        store.add([each.data for each in messages if not each.subject.endswith(".status")])
        for each in messages:
            await each.ack()


def main():
    if len(sys.argv) < 5 or sys.argv[2] not in ("rabbitmq", "nats"):
        sys.exit(__doc__)
    consume = {"rabbitmq": rabbitmq, "nats": nats}[sys.argv[2]]
    while True:
        # What was not confirmed comes again, over another connection.
        try:
            consume(Store(sys.argv[1]), sys.argv[3], sys.argv[4:])
        except KeyboardInterrupt:
            return
        except Exception as error:
            print(f"consumer: {type(error).__name__}: {error}; once more in 1 s", file=sys.stderr, flush=True)
            time.sleep(1)


if __name__ == "__main__":
    main()
