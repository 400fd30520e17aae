"""bench/tables.py: every file of measurements says where it comes from, and is printed as tables."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "bench"
sys.path.insert(0, str(BENCH))
import tables  # noqa: E402


class Tables(unittest.TestCase):
    def test_every_file_names_machine_day_and_command(self):
        known = tables.results()
        self.assertGreaterEqual(len(known), 3)
        for name, result in known.items():
            with self.subTest(name=name):
                self.assertTrue(result["what"] and result["machine"] and result["made"]["how"])
                self.assertRegex(result["made"]["date"], r"^20\d\d-\d\d-\d\d$")
                for one in result["tables"]:
                    self.assertEqual({len(row) for row in one["rows"]}, {len(one["columns"])}, one["title"])
                    for row in one["rows"]:
                        self.assertEqual(tables.row(row).count(" | "), len(row) - 1, "a cell with a border in it")

    def test_cells(self):
        for value, text in [(1.5, "1.5"), ("ring", "ring"), (None, ""), ([0.2, 0.4], "0.2 to 0.4"),
                            ({"median": [0.2, 0.4], "p99": 1}, "0.2 to 0.4 / 1"), ({"time": 3, "device": [4, 5]}, "3 (4 to 5)"),
                            ({"time": 8.8, "by": "tcp"}, "8.8 (tcp)")]:
            self.assertEqual(tables.cell(value), text)

    def test_one_by_its_name(self):
        ran = subprocess.run([sys.executable, "-B", BENCH / "tables.py", "kernels"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("\nAVX-512\n\n| kernel | sources |", ran.stdout)
        ran = subprocess.run([sys.executable, "-B", BENCH / "tables.py", "kernel"], capture_output=True, text=True)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no results are called 'kernel': expected one of ccl_fabric, ccl_host, kernels", ran.stderr)


if __name__ == "__main__":
    unittest.main()
