"""The oracle must see what it is there to see."""

import gzip
import http.client
import json
import pathlib
import random
import socket
import struct
import tempfile
import time
import unittest

from . import bodies, card, drive, weather
from .ledger import PREVIEW, Ledger, broken_limits
from .server import Answer, Server, in_turn
from .sink import Sink


def at(number):
    return (drive.START_S + number) * 1000


def rows(*pairs):
    return [(seq, at(number)) for seq, number in pairs]


class LedgerTests(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger(commit_window=1, slack=0.5)
        self.live(range(10))

    def live(self, numbers):
        self.ledger.life_began()
        for number in numbers:
            self.ledger.fed(number, float(number))

    def store(self, *pairs, life=None, batch="b", confirmed=True):
        life = self.ledger.life if life is None else life
        self.ledger.stored("e", life, batch, "0a", rows(*pairs))
        if confirmed:
            self.ledger.confirmed("e", life, batch, "0a", rows(*pairs))

    def counts(self):
        return self.ledger.report()["e"]

    def test_what_a_kill_may_cost_is_no_finding(self):
        self.store(*((n + 1, n) for n in range(8)))
        self.ledger.killed(9.4)
        self.assertEqual(self.counts()["lost"], 2)
        self.assertEqual(broken_limits(self.ledger.report()), [])

    def test_sees_what_was_lost_beyond_the_window(self):
        self.store(*((n + 1, n) for n in range(7)))
        self.ledger.killed(9.4)
        self.assertEqual(self.counts()["lost beyond the window"], 1)

    def test_without_a_kill_nothing_may_be_lost(self):
        self.store(*((n + 1, n) for n in range(9)))
        self.assertEqual(self.counts()["lost beyond the window"], 1)

    def test_a_bad_disk_moves_the_window(self):
        self.store((1, 0), (2, 1))
        self.ledger.killed(9.4, bad_disk_since=3.5)
        self.assertEqual(self.counts()["lost beyond the window"], 0)

    def test_sees_a_hole_within_the_window(self):
        self.store(*((n + 1, n) for n in range(8)), (10, 9))
        self.ledger.killed(9.4)
        self.assertEqual((self.counts()["holes"], self.counts()["lost beyond the window"]), (1, 0))

    def refuse(self, first, last, poison, batch, life=0, is_plain=False):
        self.ledger.poison |= {poison}
        self.ledger.refused("e", life, batch, "0a", rows(*((n + 1, n) for n in range(first, last + 1))), {poison}, is_plain)

    def test_what_stands_in_quarantine_is_not_missed(self):
        self.refuse(0, 9, 4, "b")
        self.store(*((n + 1, n) for n in range(10) if n != 4), batch="rest")
        self.assertEqual(self.counts()["lost"], 1)
        self.ledger.listed("e", [(at(4), False)])
        self.assertEqual(self.counts()["lost"], 0)
        self.assertEqual(broken_limits(self.ledger.report()), [])

    def test_sees_what_is_not_in_quarantine_and_what_should_not_be(self):
        self.refuse(4, 4, 4, "b")
        self.ledger.listed("e", [(at(5), False)])
        counts = self.counts()
        self.assertEqual((counts["refused, not quarantined"], counts["quarantined without cause"]), (1, 1))

    def test_the_gap_of_a_start_may_look_like_the_fix_before_it(self):
        self.refuse(4, 4, 4, "b")
        self.ledger.listed("e", [(at(4), True), (at(4), False)])
        self.assertEqual(self.counts()["quarantined twice"], 0)
        self.ledger.listed("e", [(at(4), False)])
        self.assertEqual(self.counts()["quarantined twice"], 1)

    def test_a_gap_that_is_refused_counts_as_poison(self):
        self.ledger.poison = {3}
        self.ledger.refused("e", 0, "b", "0a", rows((4, 3), (5, 3), (6, 4), (7, 5)), {3})
        self.assertEqual(self.ledger.endpoint("e").refusals[0].poison, 2)

    def test_counts_what_a_poison_record_costs(self):
        self.refuse(0, 7, 0, "b")
        for last in (3, 1, 0):
            self.refuse(0, last, 0, f"b{last}")
        self.store((2, 1), batch="c1")
        self.store((3, 2), (4, 3), batch="c2")
        self.store((5, 4), (6, 5), (7, 6), (8, 7), batch="c4")
        self.store((9, 8), batch="probe")
        counts = self.counts()
        self.assertEqual(counts["extra requests for poison, at most"], 6)
        self.assertEqual(counts["requests for poison beyond the limit"], 0)

    def test_sees_too_many_requests_for_a_poison_record(self):
        self.refuse(0, 3, 0, "b")
        for number in range(6):
            self.refuse(0, 1, 0, f"b{number}")
        self.assertEqual(self.counts()["requests for poison beyond the limit"], 1)

    def test_one_repetition_may_look_for_a_server_that_cannot_inflate(self):
        for is_plain, over in ((True, 1), (False, 2)):
            self.ledger.endpoints.clear()
            self.refuse(0, 3, 0, "b")
            for _ in range(2):
                self.refuse(0, 3, 0, "b", is_plain=is_plain)
            self.assertEqual(self.counts()["requests for poison beyond the limit"], over)

    def test_rows_in_a_leap_of_a_refused_batch_are_no_part_of_it(self):
        self.ledger.poison = {2}
        self.ledger.refused("e", 0, "b", "0a", rows((1, 0), (2, 1), (900, 2), (901, 3)), {2})
        for number in range(4, 24):
            self.store((number, number), batch=f"c{number}")
        counts = self.counts()
        self.assertEqual(counts["extra requests for poison, at most"], 0)
        self.assertEqual(counts["requests for poison beyond the limit"], 0)

    def test_a_kill_allows_for_repetitions(self):
        for life, limit in ((0, 4), (1, 1)):
            self.ledger.endpoints.clear()
            self.refuse(0, 3, 0, "b")
            for _ in range(4):
                self.refuse(0, 3, 0, "b", life=life)
            self.assertEqual(self.counts()["requests for poison beyond the limit"], limit)

    def test_a_kill_without_a_disk_allows_for_all_of_it_once_more(self):
        for bad_disk_since, beyond in ((None, 6), (3.5, 0)):
            self.ledger.endpoints.clear()
            self.ledger.life_began()
            life = len(self.ledger.lives) - 1
            for number in range(6):
                self.refuse(0, 3, 0, f"b{number}", life=life)
            self.ledger.killed(9.4, bad_disk_since=bad_disk_since)
            for number in range(6):
                self.refuse(0, 3, 0, f"c{number}", life=life + 1)
            self.assertEqual(self.counts()["requests for poison beyond the limit"], beyond)

    def test_a_row_is_refused_for_good_the_tenth_time(self):
        for refusals, beyond in ((10, 0), (11, 1)):
            self.ledger.endpoints.clear()
            for _ in range(refusals):
                self.refuse(0, 0, 0, "b")
            self.assertEqual(self.counts()["requests for poison beyond the limit"], beyond)

    def test_what_comes_from_quarantine_keeps_its_key(self):
        self.refuse(0, 0, 0, "b")
        self.refuse(1, 1, 1, "c")
        self.ledger.cured, self.ledger.poison = self.ledger.poison, set()
        self.store((5, 4))
        self.store((1, 0))
        self.store((9, 1))
        counts = self.counts()
        self.assertEqual((counts["brought back from quarantine"], counts["keys of another record"]), (2, 1))
        self.assertEqual(counts["inversions"], 0)

    def test_of_a_damaged_queue_what_is_readable_must_come(self):
        self.ledger.damaged = {0, 1, 2}
        self.store((1, 0), (2, 2))
        counts = self.counts()
        self.assertEqual((counts["lost"], counts["readable, not brought back"]), (8, 1))

    def test_where_old_records_are_dropped_the_newest_count(self):
        self.ledger.newest_only = 3
        self.store((8, 7), (9, 8), (10, 9))
        self.assertEqual(self.counts()["lost beyond the window"], 0)
        self.ledger.newest_only = 4
        self.assertEqual(self.counts()["lost beyond the window"], 1)

    def test_a_broken_reply_explains_a_repetition_and_a_whole_one_does_not(self):
        self.store((1, 0), confirmed=False)
        self.store((1, 0))
        self.assertEqual((self.counts()["duplicates explained"], self.counts()["duplicates unexplained"]), (1, 0))
        self.store((1, 0))
        self.assertEqual(self.counts()["duplicates unexplained"], 1)

    def test_a_kill_explains_one_repeated_batch(self):
        self.store((1, 0), batch="b1")
        self.store((2, 1), batch="b2")
        self.live([10])
        self.store((2, 1), batch="b2")
        self.assertEqual(self.counts()["batches repeated after a kill, at most"], 1)
        self.store((1, 0), batch="b1")
        report = self.ledger.report()
        self.assertIn("e: life 1 repeats more than one batch after a kill: ['b1', 'b2']", self.ledger.findings)
        self.assertIn("e: batches repeated after a kill, at most 2, at most 1 allowed", broken_limits(report))

    def test_an_optional_endpoint_misses_the_oldest_only(self):
        self.ledger.stored("needed", 0, "b", "0a", rows(*((n + 1, n) for n in range(10))))
        self.ledger.optional["e"] = 3
        self.store(*((n + 1, n) for n in (0, 7, 8, 9)))
        self.assertEqual((self.counts()["given up"], broken_limits(self.ledger.report())), (6, []))
        self.ledger.optional["e"] = 4
        self.assertEqual(self.counts()["lost beyond the window"], 1)

    def test_what_a_bad_disk_explains_counts_among_the_newest(self):
        self.ledger.stored("needed", 0, "b", "0a", rows(*((n + 1, n) for n in range(10))))
        self.ledger.optional["e"] = 3
        self.store(*((n + 1, n) for n in (0, 5, 6, 7, 8, 9)))
        self.ledger.killed(9.4, bad_disk_since=6.5)
        self.assertEqual((self.counts()["given up"], broken_limits(self.ledger.report())), (4, []))

    def test_what_no_endpoint_has_is_not_missed_by_an_optional_one(self):
        self.ledger.optional["e"] = 10
        self.store(*((n + 1, n) for n in range(8)))
        self.assertEqual(self.counts()["lost beyond the window"], 0)

    def test_a_repeated_batch_that_is_taken_apart_counts_once(self):
        self.store((1, 0), (2, 1), batch="whole")
        self.ledger.killed(9.4)
        self.live(range(10, 20))
        self.store((1, 0), batch="first-half")
        self.store((2, 1), batch="second-half")
        self.assertEqual(self.counts()["batches repeated after a kill, at most"], 1)

    def test_a_bad_disk_explains_more_than_one_repeated_batch(self):
        for batch, number in (("b1", 0), ("b2", 1)):
            self.store((number + 1, number), batch=batch)
        self.ledger.killed(9.4, bad_disk_since=3.5)
        self.live([])
        for batch, number in (("b1", 0), ("b2", 1)):
            self.store((number + 1, number), batch=batch)
        self.assertEqual(broken_limits({"e": self.counts()}), [])

    def test_what_was_in_memory_alone_is_forgotten_with_a_kill(self):
        self.refuse(6, 6, 6, "p")
        self.store(*((n + 1, n) for n in (0, 1, 2, 3, 4, 5, 7, 8, 9)))
        self.ledger.killed(9.4, bad_disk_since=3.5)
        self.ledger.optional["spare"] = 10
        self.ledger.stored("spare", 0, "s", "0a", rows((1, 0), (2, 1)))
        self.live([])
        self.store((20, 1), batch="gap")
        self.ledger.listed("e", [])
        self.assertEqual(broken_limits(self.ledger.report()), [])

    def test_a_preview_neither_counts_nor_is_out_of_order(self):
        self.store((10, 9), batch=f"b{PREVIEW}10")
        self.assertEqual((self.counts()["records"], self.counts()["lost"]), (0, 10))
        self.store(*((n + 1, n) for n in range(10)))
        self.assertEqual((self.counts()["previews"], broken_limits(self.ledger.report())), (1, []))

    def test_sees_a_preview_that_comes_twice_or_late(self):
        self.store((10, 9), batch=f"b{PREVIEW}10", confirmed=False)
        self.store((10, 9), batch=f"b{PREVIEW}10")
        self.assertEqual(self.counts()["previewed twice or late"], 0)
        self.store((10, 9), batch=f"c{PREVIEW}10")
        self.assertEqual(self.counts()["previewed twice or late"], 1)
        self.store((1, 0))
        self.store((1, 0), batch=f"c{PREVIEW}1")
        self.assertEqual(self.counts()["previewed twice or late"], 2)

    def test_a_life_without_a_disk_may_have_given_higher_numbers(self):
        self.store(*((n + 1, n) for n in range(4)), (900, 4), (901, 5))
        self.ledger.killed(9.4, bad_disk_since=5.2)
        self.live(range(10, 13))
        self.store((500, 10), (501, 11))
        self.assertEqual(self.counts()["inversions"], 0)
        self.store((499, 12))
        self.assertEqual(self.counts()["inversions"], 1)

    def test_a_row_that_a_life_without_a_disk_had_refused_may_have_another_number(self):
        for bad_disk_since, others in ((None, 1), (3.5, 0)):
            self.ledger.endpoints.clear()
            self.ledger.life_began()
            self.refuse(1, 1, 1, "c", life=len(self.ledger.lives) - 1)
            self.ledger.killed(9.4, bad_disk_since=bad_disk_since)
            self.ledger.cured, poison = self.ledger.poison, self.ledger.poison
            self.ledger.poison = set()
            self.store((9, 1))
            self.assertEqual(self.counts()["keys of another record"], others)
            self.ledger.cured, self.ledger.poison = set(), poison

    def test_sees_an_inversion(self):
        self.store((2, 1), (1, 0))
        self.assertEqual((self.counts()["inversions"], self.counts()["inversions of time"]), (1, 1))

    def test_sees_a_key_that_names_another_record(self):
        self.store((1, 0))
        self.live([10])
        self.store((1, 5))
        self.assertEqual(self.counts()["keys of another record"], 1)

    def test_sees_other_bytes_under_an_id(self):
        self.assertTrue(self.ledger.identified("e", "b", b"x"))
        self.assertTrue(self.ledger.identified("e", "b", b"x"))
        self.assertFalse(self.ledger.identified("e", "b", b"y"))
        self.assertEqual(self.counts()["id mismatches"], 1)

    def test_sees_a_record_that_was_never_fed(self):
        self.store((1, 11))
        self.ledger.stored("e", 0, "b", "0a", [(2, at(3) + 1)])
        self.assertEqual(self.counts()["never fed"], 2)

    def test_sees_a_request_before_its_time_but_not_after_a_kill(self):
        self.ledger.asked_to_wait("e", 0, 2, at=10.0)
        self.ledger.asked("e", 0, at=11.9)
        self.assertEqual(self.counts()["early requests"], 1)
        self.ledger.asked("e", 0, at=12.0)
        self.ledger.asked_to_wait("e", 0, 2, at=20.0)
        self.ledger.asked("e", 1, at=20.5)
        self.assertEqual(self.counts()["early requests"], 1)


class SinkTests(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger(commit_window=1)
        self.ledger.life_began()
        for number in range(100):
            self.ledger.fed(number, 0.0)

    def serve(self, kind):
        sink = Sink(self.ledger, "e", weather.Weather(1, "e", {kind: 1}))
        sink.weather.strikes = lambda second: kind
        self.addCleanup(sink.stop)
        return sink

    def test_answers_late(self):
        for kind, records in (("late", 0), ("late-stored", 2)):
            self.ledger.endpoints.clear()
            sink = self.serve(kind)
            sink.late_after = 0.1
            self.assertEqual(self.post(sink).status, 200 if records else 503)
            self.assertEqual((self.records(), self.ledger.endpoint("e").confirmed_in), (records, {}))

    def post(self, sink, count=2, compact=False):
        if compact:
            body = {"v": 2, "outbox": "0a", "n": 2, "seq": [1, 1], "time": [at(0), 1000], "lat": [1, 1], "lon": [1, 1]}
        else:
            body = {"outbox": "0a", "locations": [{"seq": n + 1, "time_ms": at(n)} for n in range(count)]}
        kind = "application/vnd.waypost.compact+json" if compact else "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", sink.port, timeout=5)
        self.addCleanup(connection.close)
        connection.request("POST", "/locations", gzip.compress(json.dumps(body).encode()), {
            "Content-Type": kind, "Content-Encoding": "gzip", "Idempotency-Key": f'"b{count}"'})
        return connection.getresponse()

    def records(self):
        return self.ledger.endpoint("e").counts["records"]

    def test_takes_both_shapes(self):
        self.assertEqual(self.post(self.serve("clear")).status, 200)
        self.assertEqual(self.post(self.serve("clear"), compact=True).status, 422)  # the id had other bytes
        self.ledger.endpoint("e").batches.clear()
        self.assertEqual(self.post(self.serve("clear"), compact=True).status, 200)
        self.assertEqual(self.records(), 2)

    def test_refuses(self):
        for kind, status in (("500", 500), ("503", 503), ("409", 409), ("415", 415)):
            self.assertEqual(self.post(self.serve(kind)).status, status)
        self.assertEqual(self.post(self.serve("413"), count=41).status, 413)
        self.assertEqual(self.records(), 0)

    def test_tells_when_to_come_back(self):
        for kind, status in (("429", 429), ("503-seconds", 503), ("503-date", 503)):
            reply = self.post(self.serve(kind))
            self.assertEqual(reply.status, status)
            self.assertIsNotNone(reply.getheader("Retry-After"))
        deadline = time.monotonic() + 5
        while self.ledger.endpoint("e").not_before is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIsNotNone(self.ledger.endpoint("e").not_before)

    def test_refuses_poison(self):
        self.ledger.poison = {1}
        sink = self.serve("clear")
        self.assertEqual(self.post(sink, count=2).status, 400)
        self.assertEqual(self.post(sink, count=1).status, 200)
        self.assertEqual(self.ledger.endpoint("e").refused_rows, {1: {("0a", 2)}})

    def test_breaks_replies(self):
        stored = {"reset-stored", "close-stored", "half-head", "half-late"}
        for kind in sorted(stored | {"reset", "close"}):
            self.ledger.endpoints.clear()
            with self.assertRaises((OSError, http.client.HTTPException), msg=kind):
                self.post(self.serve(kind))
            self.assertEqual(self.records(), 2 if kind in stored else 0, kind)
            self.assertEqual(self.ledger.endpoint("e").confirmed_in, {})
        with self.assertRaises(http.client.IncompleteRead):
            self.post(self.serve("half-body")).read()

    def test_is_down(self):
        sink = self.serve("down")
        time.sleep(0.3)
        with self.assertRaises(OSError), socket.create_connection(("127.0.0.1", sink.port), timeout=1) as client:
            client.recv(1)


class ServerTests(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger(commit_window=1)
        self.ledger.life_began()
        self.ledger.fed(0, 0.0)

    def post(self, server, batch, timeout=5):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
        self.addCleanup(connection.close)
        connection.request("POST", "/locations", json.dumps({"outbox": "0a", "locations": [{"seq": 1, "time_ms": at(0)}]}), {
            "Content-Type": "application/json", "Idempotency-Key": f'"{batch}"'})
        return connection

    def serve(self, *answers):
        server = Server(self.ledger, "e", in_turn(*answers))
        self.addCleanup(server.stop)
        return server

    def test_counts_requests_at_the_same_time(self):
        server = self.serve(Answer(delay=0.3), Answer(delay=0.3))
        first, second = self.post(server, "b"), self.post(server, "c")
        self.assertEqual((first.getresponse().status, second.getresponse().status, server.most_open), (200, 200, 2))

    def test_a_client_that_went_away_has_not_seen_the_answer(self):
        server = self.serve(Answer(delay=30))
        first = self.post(server, "b")
        deadline = time.monotonic() + 5
        while not server.requests and time.monotonic() < deadline:
            time.sleep(0.01)
        first.close()
        self.assertEqual(self.post(server, "b").getresponse().status, 200)
        self.assertEqual(server.most_open, 1)
        self.assertEqual(self.ledger.endpoint("e").counts["duplicates unexplained"], 0)

    def test_a_cut_answer_was_not_given(self):
        server = self.serve(Answer(body=b"x" * 40, cut=20))
        with self.assertRaises(http.client.IncompleteRead):
            self.post(server, "b").getresponse().read()
        self.assertEqual(self.ledger.endpoint("e").confirmed_in, {})


class DriveTests(unittest.TestCase):
    def test_no_two_fixes_have_one_time(self):
        self.assertEqual([drive.number_of(at(number)) for number in (0, 86_400, 5_000_000)], [0, 86_400, 5_000_000])
        self.assertIsNone(drive.number_of(at(0) - 1))
        self.assertTrue(drive.epoch(86_399).startswith(b"$GPRMC,235959.00,A,"))
        self.assertIn(b",020326,", drive.epoch(86_399))
        self.assertIn(b",010426,", drive.epoch(30 * 86_400))

    def test_a_plan_comes_again_with_its_seed(self):
        plans = [[weather.Weather(seed, "e").at(second)[0] for second in range(300)] for seed in (1, 1, 2)]
        self.assertEqual(plans[0], plans[1])
        self.assertNotEqual(plans[0], plans[2])

    def test_a_body_of_another_version_is_refused(self):
        with self.assertRaises(bodies.BadBody):
            bodies.rows(b'{"v":3}', "application/vnd.waypost.compact+json")

    def test_columns_hold_changes_of_the_difference(self):
        body = b'{"v":2,"outbox":"0a","n":4,"seq":[7,1,2,-2],"time":[1000,500,0,-100],"lat":[0,0,0,0],"lon":[0,0,0,0]}'
        self.assertEqual(bodies.rows(body, "application/vnd.waypost.compact+json"),
                         ("0a", [(7, 1000), (8, 1500), (11, 2000), (12, 2400)]))


class ReorderingCardTests(unittest.TestCase):
    def test_what_was_flushed_stays_under_the_name_that_its_file_got(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            reordering = card.ReorderingCard(folder, random.Random(1))
            queue, aside = (str(reordering.mount / name) for name in ("outbox.db", "outbox.db.corrupt-1"))
            with open(reordering.journal, "wb") as journal:
                for what, path, data in (
                    (b"w", queue, b"damaged"), (b"f", queue, b""), (b"r", queue, aside.encode()), (b"w", queue, b"new"), (b"f", queue, b"")
                ):
                    journal.write(struct.pack("<cIqq", what, len(path), 0, len(data)) + path.encode() + data)
            reordering.copy(folder / "image")
            self.assertEqual(
                {path.name: path.read_bytes() for path in (folder / "image").iterdir()},
                {"outbox.db": b"new", "outbox.db.corrupt-1": b"damaged"})


if __name__ == "__main__":
    unittest.main()
