"""What a check of `waypost doctor --json` came to: exits 1, and shows it, unless it is as expected.

  python3 -m lab.tools.finding FILE NUMBER STATE [PART…]       parts of what was found or of the advice
  python3 -m lab.tools.finding FILE unknown [NUMBER…]          exactly these are not known
  python3 -m lab.tools.finding FILE failed NAME LAYER          the layer that an endpoint failed at; - = it answered
"""

import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    what, *rest = sys.argv[2:]
    checks = {check["number"]: check for check in report["checks"]}
    if what == "unknown":
        found = [check for check in checks.values() if check["state"] == "unknown"]
        good = [str(check["number"]) for check in found] == rest
    elif what == "failed":
        found = {endpoint["name"]: endpoint for endpoint in report["endpoints"]}[rest[0]]
        good = found.get("failed", "-") == rest[1]
    else:
        found = checks[int(what)]
        text = found["found"] + "\n" + found.get("advice", "")
        good = found["state"] == rest[0] and all(part in text for part in rest[1:])
    if not good:
        print(f"      {json.dumps(found, ensure_ascii=False)}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
