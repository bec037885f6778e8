#!/usr/bin/env python3
"""Packets and frames of independent implementations: mqtt5, amqtt and paho-mqtt; wsproto and websockets.

  peers.py make SEED COUNT    prints what a server may send, a JSON object a line: its bytes, and what they say
  peers.py check FILE         reads what our client wrote, of the same form, and compares what it says
"""
import base64, json, pathlib, random, sys

import amqtt.mqtt.connack, amqtt.mqtt.connect, amqtt.mqtt.puback, amqtt.mqtt.publish, amqtt.mqtt.suback
import amqtt.mqtt.subscribe, amqtt.mqtt.unsuback, amqtt.mqtt.unsubscribe
import amqtt.adapters, amqtt.mqtt, asyncio, mqtt5
import paho.mqtt._packet as paho_packet
import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
import websockets.server, websockets.frames
import wsproto, wsproto.events as ws_events

dice = random.Random()


def text(longest=20):
    alphabet = "abcxyz019 -_:üß€😀\"\\"
    return "".join(dice.choice(alphabet) for _ in range(dice.randint(0, longest)))


def data():
    size = dice.choice([0, 1, 5, 100, 119, 200, 500])
    return dice.randbytes(size)


def topic():
    return "/".join(dice.choice(["fleet", "van-7", "location", "ü", ""]) for _ in range(dice.randint(2, 4)))


def some(value):
    return value if dice.random() < 0.5 else None


def users():
    return [(text(), text()) for _ in range(dice.choice([0, 0, 1, 3]))]


def properties(*pairs):
    """Those that are set, in the order of their numbers, with bytes in hexadecimal."""
    found = [[number, value.hex() if isinstance(value, bytes) else value] for number, value in pairs if value is not None]
    return sorted(found, key=lambda pair: pair[0])


QOS = [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE]


def members(codes):
    return [getattr(codes, name) for name in sorted(dir(codes)) if name.isupper()]


def said(reason, pairs):
    return properties((0x1F, reason)) + [[0x26, name, value] for name, value in pairs]


# What a server of MQTT 5 sends.

def connack5():
    number = dice.choice(members(mqtt5.ConnAckReasonCode))
    fields = {
        "session_expiry_interval": (0x11, some(dice.randint(0, 2**32 - 1))), "assigned_client_id": (0x12, some(text())),
        "server_keep_alive": (0x13, some(dice.randint(0, 65535))), "response_info": (0x1A, some(text())),
        "server_reference": (0x1C, some(text())), "reason_str": (0x1F, some(text())),
        "receive_max": (0x21, some(dice.randint(1, 65534))), "topic_alias_max": (0x22, some(dice.randint(1, 65535))),
        "max_qos": (0x24, some(dice.randint(0, 1))), "retain_available": (0x25, some(0)),
        "max_packet_size": (0x27, some(dice.randint(1, 268435455))), "wildcard_subscription_available": (0x28, some(0)),
        "subscription_id_available": (0x29, some(0)), "shared_subscription_available": (0x2A, some(0)),
    }
    given = {name: value for name, (_, value) in fields.items() if value is not None}
    for name in given:
        if name.endswith("available"):
            given[name] = False
    if "max_qos" in given:
        given["max_qos"] = QOS[given["max_qos"]]
    pairs = users()
    session = int(number) == 0 and dice.random() < 0.3
    packet = mqtt5.ConnAckPacket(session_present=session, reason_code=number, user_properties=pairs, **given)
    listed = sorted(properties(*fields.values()) + [[0x26, a, b] for a, b in pairs], key=lambda pair: pair[0])
    return packet.write(), {"type": "connack", "session": session, "reason": int(number), "properties": listed}


def publish5():
    qos = dice.randint(0, 1)
    fields = {
        "payload_format_indicator": (0x01, some(1)), "message_expiry_interval": (0x02, some(dice.randint(0, 2**32 - 1))),
        "content_type": (0x03, some(text())), "response_topic": (0x08, some("reply")),
        "correlation_data": (0x09, some(data()[:50])),
    }
    ids = [dice.randint(1, 268435455) for _ in range(dice.choice([0, 0, 1, 2]))]
    pairs = users()
    name, payload, retain = topic(), data(), dice.random() < 0.5
    number = dice.randint(1, 65535) if qos else None
    duplicate = bool(qos) and dice.random() < 0.3
    packet = mqtt5.PublishPacket(
        name, payload, qos=QOS[qos], retain=retain, packet_id=number, duplicate=duplicate, user_properties=pairs,
        subscription_ids=ids, **{key: value for key, (_, value) in fields.items() if value is not None})
    listed = properties(*fields.values(), *((0x0B, each) for each in ids)) + [[0x26, a, b] for a, b in pairs]
    return packet.write(), published(name, payload, qos, retain, duplicate, number, listed)


def published(name, payload, qos, retain, duplicate, number, listed):
    return {"type": "publish", "topic": name, "payload": payload.hex(), "qos": qos, "retain": retain,
            "duplicate": duplicate, "id": number, "properties": listed}


def puback5():
    number, reason, words, pairs = dice.randint(1, 65535), dice.choice(members(mqtt5.PubAckReasonCode)), some(text()), users()
    packet = mqtt5.PubAckPacket(number, reason_code=reason, reason_str=words, user_properties=pairs)
    return packet.write(), {"type": "puback", "id": number, "reason": int(reason), "properties": said(words, pairs)}


def answers5(kind, packet, codes):
    number, words, pairs = dice.randint(1, 65535), some(text()), users()
    reasons = [dice.choice(members(codes)) for _ in range(dice.randint(1, 4))]
    made = packet(number, reasons, reason_str=words, user_properties=pairs)
    return made.write(), {"type": kind, "id": number, "reasons": [int(r) for r in reasons], "properties": said(words, pairs)}


def disconnect5():
    reason, words, server, pairs = dice.choice(members(mqtt5.DisconnectReasonCode)), some(text()), some(text()), users()
    packet = mqtt5.DisconnectPacket(reason_code=reason, reason_str=words, server_reference=server, user_properties=pairs)
    listed = properties((0x1C, server), (0x1F, words)) + [[0x26, a, b] for a, b in pairs]
    return packet.write(), {"type": "disconnect", "reason": int(reason), "properties": listed}


MADE_5 = [
    ("mqtt5", connack5), ("mqtt5", publish5), ("mqtt5", puback5),
    ("mqtt5", lambda: answers5("suback", mqtt5.SubAckPacket, mqtt5.SubAckReasonCode)),
    ("mqtt5", lambda: answers5("unsuback", mqtt5.UnsubAckPacket, mqtt5.UnsubAckReasonCode)),
    ("mqtt5", lambda: (mqtt5.PingRespPacket().write(), {"type": "pingresp"})), ("mqtt5", disconnect5),
    ("paho", lambda: publish_paho(5)),
]


# What a server of 3.1.1 sends.

def connack3():
    code = dice.randint(0, 5)
    session = code == 0 and dice.random() < 0.5
    packet = amqtt.mqtt.connack.ConnackPacket.build(int(session), code)
    reason = [0, 0x84, 0x85, 0x88, 0x86, 0x87][code]
    return packet.to_bytes(), {"type": "connack", "session": session, "reason": reason, "properties": []}


def publish3():
    qos = dice.randint(0, 1)
    name, payload, retain = topic(), data(), dice.random() < 0.5
    number = dice.randint(1, 65535) if qos else None
    duplicate = bool(qos) and dice.random() < 0.3
    packet = amqtt.mqtt.publish.PublishPacket.build(name, payload, number, duplicate, qos, retain)
    return packet.to_bytes(), published(name, payload, qos, retain, duplicate, number, [])


def puback3():
    number = dice.randint(1, 65535)
    packet = amqtt.mqtt.puback.PubackPacket.build(number)
    return packet.to_bytes(), {"type": "puback", "id": number, "reason": 0, "properties": []}


def suback3():
    number, codes = dice.randint(1, 65535), [dice.choice([0, 1, 2, 0x80]) for _ in range(dice.randint(1, 4))]
    packet = amqtt.mqtt.suback.SubackPacket.build(number, codes)
    return packet.to_bytes(), {"type": "suback", "id": number, "reasons": codes, "properties": []}


def unsuback3():
    number = dice.randint(1, 65535)
    packet = amqtt.mqtt.unsuback.UnsubackPacket.build(number)
    return packet.to_bytes(), {"type": "unsuback", "id": number, "reasons": [], "properties": []}


MADE_3 = [("amqtt", connack3), ("amqtt", publish3), ("amqtt", puback3), ("amqtt", suback3), ("amqtt", unsuback3),
          ("paho", lambda: publish_paho(4))]


class Unsent(paho.Client):
    """Keeps what it would send."""

    def _packet_queue(self, command, packet, *rest):
        self.packet = bytes(packet)
        return paho.MQTT_ERR_SUCCESS


def publish_paho(version):
    client = Unsent(paho.CallbackAPIVersion.VERSION2, "x", protocol=version)
    client._sock = object()
    qos = dice.randint(0, 1)
    name, payload, retain = topic(), data(), dice.random() < 0.5
    number = dice.randint(1, 65535) if qos else 0
    duplicate = bool(qos) and dice.random() < 0.3
    listed, extra = [], None
    if version == 5:
        extra = Properties(PacketTypes.PUBLISH)
        expiry, kind, pairs = dice.randint(0, 2**32 - 1), text(), users()
        extra.MessageExpiryInterval, extra.ContentType = expiry, kind
        for pair in pairs:
            extra.UserProperty = pair
        listed = properties((0x02, expiry), (0x03, kind)) + [[0x26, a, b] for a, b in pairs]
    client._send_publish(number, name.encode(), payload, qos, retain, duplicate, None, extra)
    client._sock = None
    return client.packet, published(name, payload, qos, retain, duplicate, number or None, listed)


def read_by_paho(packet, version):
    """paho reads what a server sends, too: it has to agree with those that made it."""
    body = packet[1:]
    while body[0] & 0x80:
        body = body[1:]
    body = body[1:]
    kind = packet[0] >> 4
    if kind == 2 and version == 4:
        return paho_packet.decode_connack(packet[0], body, version)
    # paho does not know all reason codes of the standard for all packets.
    reader = {2: "connack", 3: "publish", 4: "puback", 9: "suback", 11: "unsuback", 14: "disconnect"}.get(kind)
    try:
        return getattr(paho_packet, "decode_" + reader)(packet[0], body, version) if reader else None
    except paho_packet.MalformedPacket as error:
        if not isinstance(error.__cause__, ValueError) or "exactly one name" not in str(error.__cause__):
            raise


# WebSocket.

def conversation():
    nonce = dice.randbytes(16)
    offered = dice.choice([[], ["mqtt"], ["one", "two"]])
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    head = ["GET /x HTTP/1.1", "Host: h", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: " + base64.b64encode(nonce).decode()]
    if offered:
        head.append("Sec-WebSocket-Protocol: " + ", ".join(offered))
    server.receive_data(("\r\n".join(head) + "\r\n\r\n").encode())
    list(server.events())
    chosen = dice.choice(offered) if offered else None
    response = server.send(ws_events.AcceptConnection(subprotocol=chosen))
    sent, events = b"", []
    for _ in range(dice.randint(1, 12)):
        kind = dice.choice(["text", "binary", "ping", "pong", "fragments"])
        if kind == "text":
            words = text(dice.choice([5, 60, 200]))
            sent += server.send(ws_events.TextMessage(data=words))
            events.append(["text", words])
        elif kind == "binary":
            block = dice.randbytes(dice.choice([0, 125, 126, 127, 3000, 65535 if dice.random() < 0.02 else 7]))
            sent += server.send(ws_events.BytesMessage(data=block))
            events.append(["binary", block.hex()])
        elif kind == "ping":
            block = dice.randbytes(dice.randint(0, 125))
            sent += server.send(ws_events.Ping(payload=block))
            events.append(["ping", block.hex()])
        elif kind == "pong":
            sent += server.send(ws_events.Pong(payload=b"x"))
            events.append(["pong"])
        else:
            words = text(60)
            for index, letter in enumerate(words):
                sent += server.send(ws_events.TextMessage(data=letter, message_finished=index + 1 == len(words)))
            if words:
                events.append(["text", words])
    if dice.random() < 0.5:
        code, reason = dice.choice([1000, 1001, 1008, 1011, 3000, 4999]), text(40)
        sent += server.send(ws_events.CloseConnection(code=code, reason=reason))
        events.append(["close", code, reason])
    return {"by": "wsproto", "nonce": nonce.hex(), "offered": offered, "chosen": chosen, "response": response.hex(),
            "bytes": sent.hex(), "events": events}


def make(seed, count):
    dice.seed(seed)
    for index in range(count):
        for version, makers in ((5, MADE_5), (4, MADE_3)):
            by, maker = makers[index % len(makers)]
            packet, says = maker()
            packet = bytes(packet)
            read_by_paho(packet, version)
            print(json.dumps({"version": version, "by": by, "bytes": packet.hex(), "packet": says}, ensure_ascii=False))
        if index % 4 == 0:
            print(json.dumps(conversation(), ensure_ascii=False))


# What our client writes.

def message_of(name, payload, qos, retain, source=None):
    return {"topic": name, "payload": (payload or b"").hex(), "qos": int(qos), "retain": bool(retain),
            "text": bool(source and source.payload_format_indicator),
            "expiry": source.message_expiry_interval if source else None,
            "content_type": source.content_type if source else None}


def read5(packet):
    found, used = mqtt5.read(packet)
    assert used == len(packet), f"{used} of {len(packet)} bytes"
    if isinstance(found, mqtt5.ConnectPacket):
        will = found.will
        return {"type": "connect", "client_id": found.client_id, "clean": found.clean_start, "keep_alive": found.keep_alive,
                "user": found.username, "password": None if found.password is None else found.password.hex(),
                "will": will and message_of(will.topic, will.payload, will.qos, will.retain, will),
                "will_delay": will.will_delay_interval if will else 0,
                "receive_max": found.receive_max, "packet_max": found.max_packet_size}
    if isinstance(found, mqtt5.PublishPacket):
        return {"type": "publish", "id": found.packet_id,
                **message_of(found.topic, found.payload, found.qos, found.retain, found)}
    if isinstance(found, mqtt5.PubAckPacket):
        return {"type": "puback", "id": found.packet_id}
    if isinstance(found, mqtt5.SubscribePacket):
        return {"type": "subscribe", "id": found.packet_id, "filters": [
            [each.pattern, int(each.max_qos), each.no_local, each.retain_as_published, int(each.retain_handling)]
            for each in found.topic_filters]}
    if isinstance(found, mqtt5.UnsubscribePacket):
        return {"type": "unsubscribe", "id": found.packet_id, "filters": list(found.patterns)}
    if isinstance(found, mqtt5.PingReqPacket):
        return {"type": "pingreq"}
    assert isinstance(found, mqtt5.DisconnectPacket), found
    return {"type": "disconnect", "reason": int(found.reason_code)}


async def read3(packet):
    stream = amqtt.adapters.BufferReader(packet)
    head = await amqtt.mqtt.MQTTFixedHeader.from_stream(stream)
    found = await amqtt.mqtt.packet_class(head).from_stream(stream, fixed_header=head)
    assert not await stream.read(1), "bytes are left"
    kind = head.packet_type
    if kind == 1:
        will = message_of(found.will_topic, found.will_message, found.will_qos, found.will_retain_flag) \
            if found.will_flag else None
        password = found.payload.password
        return {"type": "connect", "client_id": "" if found.client_id_is_random else found.client_id,
                "clean": found.clean_session_flag, "keep_alive": found.keep_alive, "user": found.username,
                "password": None if password is None else password.encode().hex(),
                "will": will, "will_delay": 0, "receive_max": None, "packet_max": None}
    if kind == 3:
        return {"type": "publish", "id": found.packet_id if found.qos else None,
                **message_of(found.topic_name, found.data, found.qos, found.retain_flag)}
    if kind == 4:
        return {"type": "puback", "id": found.packet_id}
    if kind == 8:
        return {"type": "subscribe", "id": found.variable_header.packet_id,
                "filters": [[name, qos, False, False, 0] for name, qos in found.payload.topics]}
    if kind == 10:
        return {"type": "unsubscribe", "id": found.variable_header.packet_id, "filters": list(found.payload.topics)}
    return {12: {"type": "pingreq"}, 14: {"type": "disconnect", "reason": 0}}[kind]


def read_frames(line):
    """The same by two implementations."""
    request, sent = bytes.fromhex(line["request"]), bytes.fromhex(line["bytes"])
    server = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
    server.receive_data(request)
    asked, = server.events()
    assert asked.host == "server.example:8080" and asked.target == "/?v=5" and asked.subprotocols == ["mqtt"], asked
    server.send(ws_events.AcceptConnection())
    server.receive_data(sent)
    events = []
    for event in server.events():
        if isinstance(event, ws_events.TextMessage):
            events.append(["text", event.data])
        elif isinstance(event, ws_events.BytesMessage):
            events.append(["binary", bytes(event.data).hex()])
        elif isinstance(event, (ws_events.Ping, ws_events.Pong)):
            events.append([type(event).__name__.lower(), bytes(event.payload).hex()])
        else:
            events.append(["close", int(event.code), event.reason or ""])

    other = websockets.server.ServerProtocol(subprotocols=["mqtt"])
    other.receive_data(request)
    asked, = other.events_received()
    answer = other.accept(asked)
    assert answer.status_code == 101, answer
    other.send_response(answer)
    other.receive_data(sent)
    frames = []
    for frame in other.events_received():
        kind = frame.opcode.name.lower()
        if kind == "close":
            close = websockets.frames.Close.parse(frame.data)
            frames.append(["close", int(close.code), close.reason])
        else:
            frames.append([kind, bytes(frame.data).decode() if kind == "text" else bytes(frame.data).hex()])
    assert other.parser_exc is None, other.parser_exc
    assert frames == events, f"wsproto reads {events}, websockets {frames}"
    return events


def check(path):
    lines = pathlib.Path(path).read_text().splitlines()
    wrong = 0
    for number, row in enumerate(lines, 1):
        line = json.loads(row)
        try:
            packet = bytes.fromhex(line["bytes"])
            if "request" in line:
                found, expected = read_frames(line), line["events"]
            else:
                found = read5(packet) if line["version"] == 5 else asyncio.run(read3(packet))
                expected = line["packet"]
            problem = None if found == expected else f"reads {found}\n  we wrote {expected}"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            wrong += 1
            print(f"{path}:{number}: {problem}\n  {row}", file=sys.stderr)
    print(f"{len(lines) - wrong} of {len(lines)} lines are read as we meant them")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"] and len(sys.argv) == 4:
        make(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["check"] and len(sys.argv) == 3:
        sys.exit(check(sys.argv[2]))
    else:
        sys.exit(__doc__)
