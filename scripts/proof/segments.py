"""The locations of a segment, as the program of docs/queue.md reads them."""

import pathlib

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/queue.md"
PROGRAM = PAGE.read_text().split("```python\n")[1].split("\n\n\ndatabase = ")[0]
names = {}
exec(compile(PROGRAM, str(PAGE), "exec"), names)
locations = names["locations"]


def on_pages(content, size=512):
    """First number, rows and data of each segment on a page that is whole, whatever leads to it."""
    for start in range(0, len(content), size):
        page = content[start:start + size]
        if page[0] != 13:  # a leaf of a table
            continue
        for cell in range(int.from_bytes(page[3:5], "big")):
            at = int.from_bytes(page[8 + 2 * cell:10 + 2 * cell], "big")
            try:
                length, at = varint(page, at)
                _, at = varint(page, at)
                body = page[at:at + length]
                end, at = varint(body, 0)
                kinds = []
                while at < end:
                    kind, at = varint(body, at)
                    kinds.append(kind)
                values = []
                for kind in kinds:
                    width = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind]
                    value, at = body[at:at + width], at + width
                    values.append(value if kind >= 12 else kind - 8 if kind in (8, 9) else int.from_bytes(value, "big", signed=True))
                _, first, rows, _, data = values
                list(locations(first, rows, data))
            except (IndexError, ValueError, TypeError, AttributeError, OverflowError, RuntimeError):
                continue
            yield first, rows, data


def varint(content, at):
    value = 0
    for place in range(9):
        byte = content[at]
        at += 1
        if place == 8:
            return value << 8 | byte, at
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at
    raise ValueError
