"""trellis train validate: records of other frameworks, by family; and what is printed where the user ends it."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import program

PUBLISHED = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "sim" / "published"
OTHERS = PUBLISHED / "repositories.json"
SETUPS = PUBLISHED / "training_others.json"


class PublishedSteps(program.Case):
    def test_every_training_record_of_others_is_priced_or_left_with_a_reason(self):
        done = program.trellis("train", "validate", OTHERS, "--setups", SETUPS, "--json", timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        published = {r["id"]: r for r in json.loads(OTHERS.read_text()) if r["id"].startswith("train.")}
        priced = {r["id"]: r for r in found["records"]}
        self.assertNotIn("not_priced", found)
        self.assertEqual({*priced, *found["apart"]}, set(published))
        for identity, line in priced.items():
            record = published[identity]
            if record["unit"] in ("ms", "s"):
                self.assertAlmostEqual(line["measured_s"], record["value"] * (1e-3 if record["unit"] == "ms" else 1))
            self.assertIsNone(line["left_out_s"])
            self.assertTrue(line["low_s"] < line["simulated_s"] < line["high_s"], line)
        # Eight sequences of 2,048 tokens.
        tokens = priced["train.llama31-8b-lora.trn2-3xl.s2048.isolation_real.tokens_per_s"]
        self.assertAlmostEqual(tokens["measured_s"], 8 * 2048 / 3712.9)
        # One core of two works.
        one = priced["train.llama-arch-362m.trn1-2xl.tp1.s1024.mb8x2.step"]
        self.assertGreater(one["simulated_s"], 0.5)

    def test_the_table_is_by_family_where_nothing_is_fitted(self):
        done = program.trellis("train", "validate", OTHERS, "--setups", SETUPS, "--only", "train.llama-arch", timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nfamily +records +signed +median +worst +inside\none core, trn1 +3 ")
        self.assertNotIn("left out", done.stdout)

    def test_without_another_family_nothing_is_left_out(self):
        words = ("train", "validate", PUBLISHED / "measured.json", "--only", "train.bert")
        found = json.loads(program.trellis(*words, "--json", timeout=600).stdout)
        self.assertEqual([one["without"] for one in found["fitted"]], [""])
        for line in found["records"]:
            self.assertIsNone(line["left_out_s"], line)
            self.assertTrue(line["low_s"] < line["simulated_s"] < line["high_s"], line)
        self.assertNotIn("left out", program.trellis(*words, timeout=600).stdout)

    def test_a_value_that_none_can_be_leaves_the_fit_to_the_others(self):
        published = json.loads((PUBLISHED / "measured.json").read_text())
        records = [r for r in published if r["id"].startswith("train.bert")][:3]
        found = []
        for value in (0, -1, None):
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(records[1:] + ([records[0] | {"value": value}] if value is not None else []), file)
                file.flush()
                done = program.trellis("train", "validate", file.name, "--setups", PUBLISHED / "training.json",
                                       "--json", timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(json.loads(done.stdout))
            del found[-1]["made_by"]
        for one, value in zip(found, (0, -1)):
            self.assertEqual(one.pop("not_priced"), {records[0]["id"]: f"its value is {value}: expected one above 0"})
            self.assertEqual(one, found[2])

    def interrupted(self, *words):
        ran = subprocess.Popen([program.TRELLIS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(ran.kill)
        program.await_handler(ran, signal.SIGINT)
        ran.send_signal(signal.SIGINT)
        said, errors = ran.communicate(timeout=60)
        self.assertEqual(ran.returncode, 1, said + errors)
        return said + errors

    def test_ends_with_what_there_is(self):
        for words in (("train", "validate", PUBLISHED / "measured.json"),
                      ("validate", PUBLISHED / "measured.json", "--only", "train.")):
            said = self.interrupted(*words)
            self.assertRegex(said, r"(\ninterrupted: \d+ (of \d+ )?records are there\n|interrupted before there was a result\n)$")
        said = self.interrupted("calibrate", PUBLISHED / "measured.json")
        self.assertTrue(re.search("interrupted", said), said)


if __name__ == "__main__":
    unittest.main()
