"""bench/peers/: what is made of measurements. Nothing is measured here."""
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "bench/peers"))
import libraries  # noqa: E402
import results  # noqa: E402
import run  # noqa: E402


def one_round(ours, device, plain, tuned):
    """Of two sizes; each library's figures for both."""
    subjects = {("ours", "malloc"): ours, ("ours", "device"): device, ("openmpi", "as installed"): plain,
                ("openmpi", "no single copy"): tuned}
    return {who: {size: (median, 2 * median, "ring") for size, median in zip((8, 1 << 20), times)}
            for who, times in subjects.items()}


class Peers(unittest.TestCase):
    def setUp(self):
        self.found = results.Results("all_reduce", 2, 2, "together", [8, 1 << 20],
                                     {"openmpi": ["as installed", "no single copy"]})
        for low in (1, 3, 2):  # by turns; the median round counts
            self.found.add("near", one_round((low, 50), (low, 40), (4, 100), (5, 90)), None)
        self.found.add("far", one_round((4, 60), (4, 50), (6, 100), (7, 150)), None)

    def test_a_library_counts_with_its_best_setting_at_each_size(self):
        self.assertEqual(self.found.best("near", "openmpi", 8)[1], "as installed")
        self.assertEqual(self.found.best("near", "openmpi", 1 << 20)[1], "no single copy")
        self.assertEqual(self.found.best("far", "openmpi", 1 << 20)[1], "as installed")
        self.assertEqual(self.found.faster("near", "malloc", 8), 2)
        self.assertEqual(self.found.faster("near", "device", 1 << 20), 90 / 40)

    def test_a_table_has_ranges_over_modes_and_names_the_settings(self):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.found.table().splitlines()]
        self.assertEqual(rows[0], ["all_reduce", "ours", "device", "Open MPI", "times faster", "device", "best settings"])
        self.assertEqual(rows[2], ["8 B", "2 to 4 / 4 to 8", "2 to 4 / 4 to 8", "4 to 6 / 8 to 12", "1.5 to 2.0", "1.5 to 2.0",
                                   "Open MPI: as installed"])
        self.assertEqual(rows[3][0], "1 MiB")
        self.assertEqual(rows[3][-1], "Open MPI: no single copy or as installed")

    def test_ratios_of_several_operations(self):
        rows = results.ratios([self.found]).splitlines()
        self.assertEqual(rows[0], "|  | 8 B | 1 MiB |")
        self.assertEqual(rows[2], "| all_reduce | 1.5 to 2.0 (1.5 to 2.0) | 1.7 to 1.8 (2.0 to 2.2) |")

    def test_the_text_says_both_and_how_many_rounds(self):
        text = self.found.text()
        self.assertIn("rounds: 3 near, 1 far", text)
        self.assertIn("ring; Open MPI: no single copy", text)

    def test_settings_are_named_once(self):
        for name, settings in libraries.SETTINGS.items():
            self.assertEqual(len({s.name for s in settings}), len(settings), name)

    def test_a_program_that_hangs_is_ended_and_named(self):
        with self.assertRaisesRegex(run.Failed, "sleep did not end within 0.2 s"):
            run.run(["sleep"], [30], dict(os.environ), os.sched_getaffinity(0), seconds=0.2)
        with self.assertRaisesRegex(run.Failed, "false ended with 1"):
            run.run(["false"], [8], dict(os.environ), os.sched_getaffinity(0))


if __name__ == "__main__":
    unittest.main()
