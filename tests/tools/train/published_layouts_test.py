"""trellis train search: for what was published, it finds a layout at least as good as the published one.

    TRELLIS=... TRELLIS_SOURCE_DIR=... published_layouts_test.py RECORD...      prints the table of docs/step.md
"""
import json
import os
import pathlib
import sys
import tempfile
import unittest

import program

PUBLISHED = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "sim" / "published"
RECORDS = {record["id"]: record for record in json.loads((PUBLISHED / "measured.json").read_text())}
SETUPS = json.loads((PUBLISHED / "training.json").read_text())
# Of one host, and of 32 with few layouts that a bound does not rule out.
CASES = ["train.gpt3-6-7b.n1.8xnc-tp-x4-dp.mb1.gb64.bf16-sr.unstated",
         "train.llama-3-1-70b.n32.tp-32-dp-4-pp-8.mb1.gb1024.bf16-fp32opt.adam"]


def priced_and_searched(identity):
    entry = next(entry for entry in SETUPS["records"] if entry["id"] == identity)
    said = RECORDS[identity]["parameters"]
    keys = {**SETUPS["models"][entry["model"]], **SETUPS["setups"][entry["setup"]],
            "model.optim.name": SETUPS["optimizers"][said["optimizer"]],
            "data.micro_batch_size": said["microbatch_per_worker"], "data.global_batch_size": said["global_batch"],
            "distributed_strategy.tensor_model_parallel_size": said["tp"],
            "distributed_strategy.pipeline_model_parallel_size": said["pp"]}
    machine = "trn1.32xlarge" + (f" x {said['nodes']}" if said["nodes"] > 1 else "")
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / "published.yaml"
        config.write_text("name: published\n")
        words = [config, "-m", machine, "--software", said["sdk"], "--json",
                 *(word for key, value in keys.items() for word in ("--set", f"{key}={value}"))]
        return [json.loads(program.trellis("train", command, *words, timeout=600).stdout)
                for command in ("price", "search")]


def print_table(records):
    print("| record | published layout | its step | found | its step | layouts | priced |\n|---|---|---|---|---|---|---|")
    for identity in records:
        published, search = priced_and_searched(identity)
        best = search["layouts"][0]
        print(f"| `{'.'.join(identity.split('.')[1:3])}` | T={published['tensor']} P={published['pipeline']} "
              f"| {published['time_ps'] * 1e-12:.2f} s | {best['layout']} | {best['step_us'] * 1e-6:.2f} s "
              f"| {search['layouts_possible']} | {search['priced']} |", flush=True)


class PublishedLayouts(program.Case):
    def test_a_search_finds_layouts_at_least_as_good(self):
        for identity in CASES:
            with self.subTest(record=identity):
                published, search = priced_and_searched(identity)
                best = search["layouts"][0]
                self.assertTrue(best["fits"])
                if published["fits"]:
                    self.assertLessEqual(best["step_us"], published["time_ps"] * 1e-6 * (1 + 1e-9))
                for layout in search["layouts"]:
                    self.assertLessEqual(layout["bound_us"], layout["step_us"])


if __name__ == "__main__":
    if any(word.startswith("train.") for word in sys.argv[1:]):
        print_table(sys.argv[1:])
    else:
        unittest.main()
