"""What clocks say to a program that is run again, with the journal's readings."""

import time
import unittest

import child

fimble = child.load()
repeat = fimble.repeat
SEED = "00" * 32


class Journal:
    """A run's readings, kept as the host keeps them."""

    def __init__(self, past=None):
        self.round = repeat.Repeat(SEED, past or {})
        self.clocks = dict(self.round._clocks)
        self.past = {name: [] for name in self.clocks}

    def read(self, name, times):
        return [self.clocks[name].now() for _ in range(times)]

    def call(self):
        said = self.round.said() or {}
        for name, readings in self.past.items():
            readings += [*said.get(name, []), repeat.CALL]
        self.round.called()


class Clocks(unittest.TestCase):
    def test_readings_that_were_not_kept_shift_no_later_ones(self):
        for clock in ("wall", "steady", "counter"):
            with self.subTest(clock=clock):
                first = Journal()
                many = first.read(clock, repeat.MOST + 500)
                first.call()
                after = first.read(clock, 2)
                first.call()
                self.assertEqual(len(first.past[clock]), repeat.MOST + 2 + 3)
                again = Journal(first.past)
                told = again.read(clock, repeat.MOST + 700)
                self.assertEqual(told[: repeat.MOST], many[: repeat.MOST])
                # The others are the clock's own, and go on.
                self.assertGreaterEqual(told[repeat.MOST], many[repeat.MOST])
                again.call()
                self.assertEqual(again.read("wall", 2) if clock == "wall" else [], after if clock == "wall" else [])
                if clock != "wall":
                    # One that never goes back is where it was, or later.
                    self.assertEqual(told, sorted(told))
                    self.assertGreaterEqual(min(again.read(clock, 2)), told[-1])

    def test_a_program_that_looks_less_or_more_often_is_right_again_after_its_call(self):
        first = Journal()
        kept = [first.read("wall", 3)]
        first.call()
        first.call()
        kept.append(first.read("wall", 3))
        first.call()
        for times in (0, 1, 3, 9):
            again = Journal(first.past)
            self.assertEqual(again.read("wall", times)[:3], kept[0][:times])
            again.call()
            again.call()
            self.assertEqual(again.read("wall", 3), kept[1])
            again.call()
            self.assertGreaterEqual(again.read("wall", 1)[0], kept[1][-1])
            # What is told again is journaled again, as it was.
            self.assertEqual(again.past["wall"][-4:], [*kept[1], repeat.CALL])

    def test_a_clock_that_does_not_go_back_goes_on_from_what_it_said(self):
        later = time.monotonic_ns() + 10**12
        again = Journal({"steady": [later - 5, later, repeat.CALL]})
        self.assertEqual(again.read("steady", 2), [later - 5, later])
        again.call()
        told = again.read("steady", 100)
        self.assertEqual(told, sorted(told))
        self.assertTrue(later <= told[0] and told[-1] < later + 10**11)

    def test_a_call_that_is_too_large_to_be_made_takes_no_readings_with_it(self):
        calls = []
        source = """
import time
first = time.time_ns()
try:
    await kit.take(text="x" * 3_000_000)
except InvalidArgument:
    print("too large")
await kit.take(text=str(first))
print(time.time_ns())
"""
        answer = lambda call: calls.append(call)
        limits = {**child.LIMITS, "frame_bytes": 2_000_000}
        played = child.play(source, answer=answer, limits=limits, repeat={"seed": SEED, "readings": {}})
        self.assertEqual((played.ending["kind"], len(calls)), ("returned", 1), played.ending)
        self.assertEqual(calls[0]["readings"]["wall"], [int(calls[0]["keyword"]["text"])])
        past = {"wall": [5, repeat.CALL, 7]}
        again = child.play(source, answer=answer, limits=limits, repeat={"seed": SEED, "readings": past})
        self.assertEqual((calls[1]["keyword"]["text"], again.output), ("5", "too large\n7\n"))


if __name__ == "__main__":
    unittest.main()
