"""Sends a device a command through waypost-collector and prints what became of it: done, or the code of the refusal."""

import argparse
import json
import sys
import time
import urllib.request


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("url", help="such as http://127.0.0.1:8181/commands/lab-1")
    options.add_argument("id")
    options.add_argument("verb")
    options = options.parse_args()
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 50))
    command = {"id": options.id, "do": options.verb, "expires": expires}
    urllib.request.urlopen(options.url, json.dumps(command).encode(), timeout=5)
    end = time.monotonic() + 40
    while time.monotonic() < end:
        with urllib.request.urlopen(options.url, timeout=5) as commands:
            for answer in json.load(commands)["answers"]:
                if answer["id"] == options.id:
                    print("done" if answer.get("ok") else answer["error"]["code"])
                    return
        time.sleep(0.3)
    sys.exit("no answer")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(str(error))
