"""What is counted must be what callgrind says."""

import pathlib
import tempfile
import unittest

from . import instructions

PROFILE = """# callgrind format
positions: line
events: Ir

ob=(1) /build/waypost
fl=(1) ???
fn=(1) main
0 10
+1 5
cob=(2) /lib/libc.so.6
cfn=(2) memcpy
calls=3 0
0 900
* 2

ob=(2)
fn=(2)
0 900
"""


class InstructionsTests(unittest.TestCase):
    def test_a_call_counts_where_it_goes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".out") as file:
            file.write(PROFILE)
            file.flush()
            self.assertEqual(instructions.by_object(pathlib.Path(file.name)), {"/build/waypost": 17, "/lib/libc.so.6": 900})

    def test_the_log_is_the_same_each_time(self):
        self.assertEqual(instructions.journey(100), instructions.journey(100))


if __name__ == "__main__":
    unittest.main()
