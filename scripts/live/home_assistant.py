"""Reads the messages that a profile renders, and holds each discovery payload against the schema of its component."""
import json, re, sys

from homeassistant.components.mqtt import binary_sensor, device_tracker, sensor

schemas = {each.__name__.rsplit(".", 1)[1]: each.DISCOVERY_SCHEMA for each in (binary_sensor, device_tracker, sensor)}
lines = sys.stdin.read().split("\n")
accepted = []
for index, line in enumerate(lines):
    if found := re.match(r"PUBLISH homeassistant/(\w+)/(\S+)/config", line):
        schemas[found[1]](json.loads(lines[index + 1]))
        accepted.append(f"{found[1]}/{found[2]}")
if len(accepted) != 9:
    sys.exit(f"home-assistant: {len(accepted)} discovery messages, expected 9: {accepted}")
print("home-assistant: accepted " + ", ".join(accepted))
