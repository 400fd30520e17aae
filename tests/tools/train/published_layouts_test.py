"""trellis train search: for what was published, it finds a layout at least as good as the published one."""
import json
import os
import pathlib
import tempfile
import unittest

import program

PUBLISHED = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "sim" / "published"
RECORDS = {record["id"]: record for record in json.loads((PUBLISHED / "measured.json").read_text())}
SETUPS = json.loads((PUBLISHED / "training.json").read_text())
# Of one host: searches of more take minutes.
CASES = ["train.gpt3-6-7b.n1.8xnc-tp-x4-dp.mb1.gb64.bf16-sr.unstated"]


class PublishedLayouts(program.Case):
    def run_one(self, identity):
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

    def test_a_search_finds_layouts_at_least_as_good(self):
        for identity in CASES:
            with self.subTest(record=identity):
                published, search = self.run_one(identity)
                best = search["layouts"][0]
                self.assertTrue(best["fits"])
                if published["fits"]:
                    self.assertLessEqual(best["step_us"], published["time_ps"] * 1e-6 * (1 + 1e-9))
                for layout in search["layouts"]:
                    self.assertLessEqual(layout["bound_us"], layout["step_us"])


if __name__ == "__main__":
    unittest.main()
