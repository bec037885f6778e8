"""The locations of a segment, as the program of docs/queue.md reads them."""

import pathlib

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/queue.md"
PROGRAM = PAGE.read_text().split("```python\n")[1].split("\n\n\ndatabase = ")[0]
names = {}
exec(compile(PROGRAM, str(PAGE), "exec"), names)
locations = names["locations"]
