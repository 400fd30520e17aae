"""trellis train price and search: a step's time, where it goes, what fits; a pipeline's repetition; a search's winner."""
import json
import os
import pathlib
import re
import unittest

import program
from small_run import CONFIG, sets, trellis

MIXTRAL = str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples" / "mixtral.yaml")
LLAMA = str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples" / "llama3_70b.yaml")
LONG = str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples" / "long_context.yaml")
MODEL = {"data__seq_length": 512, "model__hidden_size": 512, "model__num_attention_heads": 8,
         "model__num_key_value_heads": 8, "model__intermediate_size": 1024, "model__num_layers": 8,
         "precision__type": "mixed_precision"}


class Price(program.Case):
    def price(self, machine="trn1.32xlarge", more=(), returncode=0, **keys):
        done = trellis("train", "price", CONFIG, "-m", machine, "--json", *more, *sets(**{**MODEL, **keys}))
        self.assertEqual(done.returncode, returncode, done.stderr)
        return json.loads(done.stdout)

    def piped(self, micro_batches, pipeline=4, chunks=1, **keys):
        return {"distributed_strategy__tensor_model_parallel_size": 2, "data__micro_batch_size": 1,
                "distributed_strategy__pipeline_model_parallel_size": pipeline,
                "distributed_strategy__virtual_pipeline_model_parallel_size": chunks,
                "distributed_strategy__sequence_parallel": "true",
                "data__global_batch_size": micro_batches * 32 // 2 // pipeline, **keys}

    def test_the_steady_state_that_repeats_is_what_every_micro_batch_laid_out_takes(self):
        for keys in self.piped(24), self.piped(24, chunks=2), self.piped(12, pipeline=2), self.piped(9, pipeline=1):
            folded, whole = self.price(**keys), self.price(more=["--whole"], **keys)
            self.assertEqual(folded["time_ps"], whole["time_ps"], keys)
            self.assertEqual(folded["memory_bytes"], whole["memory_bytes"], keys)
            for a, b in zip(folded["classes"], whole["classes"]):
                for key in a:
                    if key.endswith("_us"):
                        self.assertAlmostEqual(a[key], b[key], delta=1e-6 * folded["time_ps"] * 1e-6, msg=(key, keys))

    # With more tensor ranks than heads of keys and values, some project the same ones; experts with room have empty rows.
    def test_what_utilization_counts_is_the_same_in_every_layout(self):
        def flops(*words):
            done = trellis("train", "price", *words, "--json")
            self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: it does not fit
            p = json.loads(done.stdout)
            return p["mfu"] * p["time_ps"]
        of_llama = [flops(LLAMA, "-m", "trn2.48xlarge x 64", "--set", f"distributed_strategy.tensor_model_parallel_size={tensor}")
                    for tensor in (8, 16, 32, 64)]
        of_mixtral = [flops(MIXTRAL, "-m", "trn1.2xlarge", "--set", "model.moe.dropless=false", "--set",
                            f"model.moe.capacity_factor={factor}") for factor in (1, 2, 4)]
        for each in of_llama, of_mixtral:
            self.assertLess(max(each) / min(each), 1.001, each)

    def test_where_the_time_goes_adds_up(self):
        p = self.price(**self.piped(24))
        for of in p["classes"]:
            self.assertAlmostEqual(sum(v for k, v in of.items() if k.endswith("_us")), p["time_ps"] * 1e-6,
                                   delta=1e-5 * p["time_ps"] * 1e-6)
        self.assertLess(p["low_ps"], p["time_ps"])
        self.assertGreater(p["high_ps"], p["time_ps"])

    def test_what_memory_is_for_adds_up_and_is_shown_alike(self):
        keys = self.piped(24)
        priced = self.price(**keys)["classes"]
        shown = trellis("train", "show", CONFIG, "--ranks", "32", "--json", *sets(**{**MODEL, **keys}))
        parts = [f"{name}_bytes" for name in ("weights", "gradients", "optimizer", "activations")]
        for stage, of in zip(json.loads(shown.stdout)["stages"], priced, strict=True):
            for row in (stage, of):
                self.assertEqual(sum(row[part] for part in parts), row["memory_bytes"])
            self.assertEqual([stage[part] for part in parts], [of[part] for part in parts])

    # The first stage has four micro-batches in flight, of two layers each, and in a backward pass one array more.
    def test_what_attention_holds_without_flash_decides_what_fits(self):
        array = 4 * 512 * 512 * 2  # of a layer: four heads of a rank, in bf16
        keys = {**self.piped(24), "model__fusions__flash_attention": "false"}
        plain = self.price(**keys)
        flash = self.price(**{**keys, "model__fusions__flash_attention": "true"})
        self.assertEqual((plain["attention_pairs_bytes"], flash["attention_pairs_bytes"]), (9 * array, 0))
        self.assertAlmostEqual(plain["memory_bytes"] - flash["memory_bytes"], 9 * array, delta=array)
        between = ["--what-if", f"hbm.bytes={plain['memory_bytes'] + flash['memory_bytes']}B"]  # of two ranks
        self.assertFalse(self.price(more=between, returncode=1, **keys)["fits"])
        self.assertTrue(self.price(more=between, **{**keys, "model__fusions__flash_attention": "true"})["fits"])

    def test_what_a_machine_lacks_costs_time(self):
        keys = self.piped(12)
        usual = self.price(**keys)["time_ps"]
        self.assertGreater(self.price(more=["--what-if", "straggler:3:0.5"], **keys)["time_ps"], 1.2 * usual)
        self.assertGreater(self.price(more=["--what-if", "dma.engine.rate=8GB/s"], **keys)["time_ps"], usual)
        self.assertLess(self.price(more=["--what-if", "tensor.clock=5GHz"], **keys)["time_ps"], usual)
        self.assertGreater(self.price(more=["--software", "2.3"], **keys)["time_ps"], usual)

    # Each by the command of docs/step.md. Two hosts, whose data-parallel groups meet over EFA.
    def test_each_what_if_changes_the_answer_in_its_direction(self):
        words = {"data__global_batch_size": 64, "distributed_strategy__tensor_model_parallel_size": 8,
                 "distributed_strategy__sequence_parallel": "true", "data__micro_batch_size": 2}
        def priced(*changes):
            return self.price("trn1.32xlarge x 2", [word for change in changes for word in ("--what-if", change)], **words)

        usual = priced()
        for slower in ("efa.rate=7GB/s", "nic:0:0.5", "straggler:3:0.5", "dead:0-4", "slow:0-4:0.5", "hbm.rate=200GB/s"):
            self.assertGreater(priced(slower)["time_ps"], usual["time_ps"], slower)
        for faster in ("efa.rate=28GB/s", "tensor.clock=5.6GHz", "dma.engine.rate=34GB/s"):
            self.assertLess(priced(faster)["time_ps"], usual["time_ps"], faster)
        self.assertLessEqual(priced("hbm.rate=1640GB/s")["time_ps"], usual["time_ps"])  # DMA engines are slower than either
        twice = priced("hbm.bytes=64GiB")
        self.assertEqual((twice["time_ps"], twice["memory_of_rank_bytes"]),
                         (usual["time_ps"], 2 * usual["memory_of_rank_bytes"]))
        both = priced("straggler:3:0.5", "efa.rate=7GB/s")
        self.assertGreater(both["time_ps"], priced("straggler:3:0.5")["time_ps"])

    def test_a_defect_costs_time_on_whichever_host_it_is(self):
        keys = {"data__global_batch_size": 64, "distributed_strategy__tensor_model_parallel_size": 8,
                "distributed_strategy__sequence_parallel": "true", "data__micro_batch_size": 2}
        def priced(*more):
            return self.price("trn1.32xlarge x 2", more, **keys)["time_ps"]

        usual = priced()
        for first, other in (("slow:0-4:0.1", "slow:32-36:0.1"), ("hbm:0:0.1", "hbm:32:0.1")):
            one = priced("--what-if", first)
            self.assertGreater(one, 1.1 * usual, first)
            self.assertAlmostEqual(priced("--what-if", other), one, delta=0.01 * one, msg=other)

    def test_what_ifs_that_make_no_sense_are_refused_by_name(self):
        for change, said in (("tensor.clok=3GHz", "no figure 'tensor.clok'"), ("nic:999:0.5", "rank 999"),
                             ("straggler:3:0", "a straggler's speed"), ("efa.rate=0GB/s", "efa out carries nothing"),
                             ("hbm.rate=0GB/s", "hbm.rate is 0"), ("dma.engine.rate=0GB/s", "dma.engine.rate is 0"),
                             ("tensor.clock=0GHz", "tensor.clock is 0"), ("efa.rate=3", "efa.rate cannot be '3'"),
                             ("dead:5", "'dead:5'"), ("hbm.bytes=-1GiB", "hbm.bytes cannot be")):
            done = trellis("train", "price", CONFIG, "-m", "trn1.32xlarge x 2", "--what-if", change,
                           *sets(data__global_batch_size=256))
            self.assertEqual(done.returncode, 2, (change, done.stdout[:200], done.stderr[-200:]))
            self.assertIn(said, done.stderr)

    def test_operations_by_programs_are_said_and_kept(self):
        folder = self.new_folder()
        def priced(*more):
            done = trellis("train", "price", CONFIG, "-m", "trn1.2xlarge", "--json", "--times", "programs", *more,
                           *sets(**MODEL), TRELLIS_CACHE=str(folder))
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout), done.stderr

        formulas = self.price("trn1.2xlarge")
        self.assertEqual(formulas["times"], "formulas")
        self.assertTrue(all(o["by_programs_us"] == 0 for o in formulas["operations"]))
        first, said = priced()
        self.assertEqual((first["times"], said), ("programs", ""))
        product = next(o for o in first["operations"] if o["operation"] == "product")
        self.assertAlmostEqual(product["by_programs_us"], product["time_us"], delta=1e-6 * product["time_us"])
        self.assertNotEqual(first["time_ps"], formulas["time_ps"])
        kept, = (folder / "times").glob("trn1-*.times")
        whole = kept.read_bytes()
        self.assertEqual(priced()[0], first)
        self.assertEqual(kept.read_bytes(), whole)
        kept.write_bytes(whole[:-5])
        again, said = priced()
        self.assertEqual(again, first)
        self.assertIn("not as it was written", said)
        self.assertEqual(kept.read_bytes(), whole)
        self.assertEqual(priced("--what-if", "tensor.clock=5.6GHz")[0]["times"], "programs")
        self.assertEqual(len(list((folder / "times").glob("*.times"))), 2)

    def test_products_of_mx_are_priced_as_such_where_the_chip_has_them(self):
        batch = {"data__global_batch_size": 512}
        def times(precision):
            of_kinds = self.price("trn3.gen1", precision__type=precision, **batch)["operations"]
            return {o["operation"]: o["time_us"] for o in of_kinds}
        fp8, mxfp8 = times("fp8"), times("mxfp8")
        for kind in "product", "cast":
            self.assertLess(mxfp8[kind], 0.99 * fp8[kind], kind)
        for command in "price", "search":
            done = trellis("train", command, CONFIG, "-m", "trn2.48xlarge",
                           *sets(**MODEL | batch | {"precision__type": "mxfp8"}))
            self.assertEqual((done.returncode, done.stdout), (2, ""), command)
            self.assertIn("trn2 has no MX (tensor.row.mx is 0): expected a chip with it, as trn3, or fp8", done.stderr)

    def test_what_does_not_fit_is_said(self):
        p = self.price(returncode=1, more=["--what-if", "hbm.bytes=0.01GiB"], **self.piped(12))
        self.assertFalse(p["fits"])

    def test_wrong_words_are_refused(self):
        for more, said in ((["-m", "ring:2"], "has no chip"),
                           (["-m", "trn1.2xlarge", "--software", "new"], "expected a release"),
                           (["-m", "trn1.2xlarge", "--checkpoint", "30min"], "--checkpoint goes with --host-mtbf"),
                           (["-m", "trn1.2xlarge", "--save", "60s"], "--save goes with --host-mtbf"),
                           (["-m", "trn1.2xlarge", "--restart", "5min"], "--restart goes with --host-mtbf"),
                           (["-m", "trn1.2xlarge", "-n", "64", "--set", "data.global_batch_size=256"], "is for 64 ranks")):
            done = trellis("train", "price", CONFIG, *more)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(said, done.stderr)

    def test_a_search_finds_nothing_slower_than_any_layout_that_it_lists(self):
        done = trellis("train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "16", "--json", *sets(**MODEL))
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        times = [l["step_us"] for l in found["layouts"] if l["fits"]]
        self.assertEqual(times, sorted(times))
        self.assertLess(found["priced"], found["layouts_possible"])
        for l in found["layouts"]:
            self.assertLessEqual(l["bound_us"], l["step_us"])
        self.assertEqual(found["too_large"], 0)
        memory = [l["memory_bytes"] for l in found["front"]]
        self.assertEqual(memory, sorted(memory, reverse=True))

    def test_a_search_in_which_no_layout_is_possible_says_why(self):
        done = trellis("train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "1000000")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("no layout is possible: T=1 P=1 V=1 micro-batch 1 ZeRO-1: data.global_batch_size is 1000000, in "
                      "500000 micro-batches: expected at most 65536 of them", done.stdout)
        self.assertNotIn("fits into", done.stdout)

    def test_points_are_of_one_machine(self):
        machine, points = self.new_folder() / "b.machine", self.new_folder() / "points"
        words = ["train", "search", CONFIG, "-m", machine, "-g", "16", "--json", *sets(**MODEL), "--points", points]
        for dims, status in (("2x1", 0), ("2x2", 2)):
            machine.write_text(f"like trn1.2xlarge\nlevel torus neuronlink {dims}\n")
            done = trellis(*map(str, words))
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn("it is of another model, machine, software or build", done.stderr)

    def test_a_search_leaves_out_what_does_not_fit_and_nothing_that_does(self):
        words = ["train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "16", "--json", "--most", "1000", *sets(**MODEL)]
        free = json.loads(trellis(*words).stdout)
        most = sorted(l["memory_bytes"] for l in free["layouts"])[len(free["layouts"]) // 3]
        narrow = json.loads(trellis(*words, "--what-if", f"hbm.bytes={2 * most}B").stdout)
        self.assertGreater(narrow["too_large"], 0)
        fitting = [l for l in narrow["layouts"] if l["fits"]]
        self.assertLessEqual(max(l["memory_bytes"] for l in fitting), most)
        self.assertLessEqual(min(l["step_us"] for l in fitting),
                             min(l["step_us"] for l in free["layouts"] if l["memory_bytes"] <= most))

    def test_a_search_shares_out_experts(self):
        large = ["--set", "model.intermediate_size=4096", "--set", "model.num_layers=2"]  # experts are most of it
        done = trellis("train", "search", MIXTRAL, "-m", "trn1.2xlarge", "-g", "16", "--json", "--most", "1000", *large)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["layouts"]
        self.assertTrue(any(" E=2 " in l["layout"] for l in found), found)
        for l in found:
            self.assertLessEqual(l["bound_us"], l["step_us"])
            price = trellis("train", "price", MIXTRAL, "-m", "trn1.2xlarge", "--json", *large,
                            *self.keys_of(l["layout"]))
            self.assertAlmostEqual(json.loads(price.stdout)["time_ps"] * 1e-6, l["step_us"], delta=1e-6 * l["step_us"])

    def test_a_search_shares_out_sequences(self):
        # Of five sequences no two ranks have as many.
        words = ["train", "search", LONG, "-m", "trn1.2xlarge", "-g", "5", "--json", "--most", "1000", "--set",
                 "data.seq_length=4096"]
        done = trellis(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        shared = [l for l in json.loads(done.stdout)["layouts"] if " C=2 " in l["layout"]]
        self.assertTrue(shared)
        for l in shared:
            self.assertLessEqual(l["bound_us"], l["step_us"])
            price = json.loads(trellis("train", "price", LONG, "-m", "trn1.2xlarge", "--json", "--set", "data.seq_length=4096",
                                       *self.keys_of(l["layout"], 5)).stdout)
            self.assertAlmostEqual(price["time_ps"] * 1e-6, l["step_us"], delta=1e-6 * l["step_us"])
            self.assertEqual(price["memory_bytes"], l["memory_bytes"])
            # What it needs is known before it is priced: with a little less, it is left out.
            for part, fits in ((1.001, True), (0.999, False)):
                memory = f"hbm.bytes={2 * part * l['memory_bytes']:.0f}B"
                tight = json.loads(trellis(*words, "--what-if", memory).stdout)["layouts"]
                self.assertEqual(l["layout"] in [o["layout"] for o in tight if o["fits"]], fits, l)
        without = json.loads(trellis(*words, "--most-context", "1").stdout)
        self.assertFalse([l for l in without["layouts"] if " C=" in l["layout"]])

    # The words of a layout as keys of the configuration.
    def keys_of(self, words, batch=16):
        names = {"T": "tensor_model", "P": "pipeline_model", "V": "virtual_pipeline_model", "E": "expert_model",
                 "C": "context"}
        strategy = "distributed_strategy."
        keys = {"data.global_batch_size": batch, strategy + "zero1": str("ZeRO-1" in words).lower(),
                strategy + "sequence_parallel": str("SP" in words).lower(),
                "model.activations_checkpoint_granularity":
                    next((w for w in ("selective", "full") if w in words.split()), "none")}
        for letter, size in re.findall(r"\b([TPVEC])=(\d+)", words):
            keys[f"{strategy}{names[letter]}_parallel_size"] = size
        keys["data.micro_batch_size"] = re.search(r"micro-batch (\d+)", words)[1]
        schedule = re.search(r"V=\d+(?: [EC]=\d+)* ([\w-]+) micro-batch", words)
        if schedule:
            keys[strategy + "pipeline_schedule"] = schedule[1]
        return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]

    def test_a_search_goes_on_where_it_ended(self):
        points = self.new_folder() / "points"
        words = ["train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "16", "--json", *sets(**MODEL)]
        def found(*more):
            answer = json.loads(trellis(*words, *more).stdout)
            del answer["made_by"]
            return answer

        whole, first = found(), found("--points", points)
        self.assertEqual(first, whole)
        lines = points.read_text().splitlines()
        self.assertEqual(len(lines), 1 + first["priced"])
        points.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # cut off while it was written
        again = found("--points", points)
        self.assertEqual(again["resumed"], first["priced"] - 1)
        self.assertEqual({**again, "resumed": 0}, whole)
        other = trellis(*words, "--points", points, "--what-if", "tensor.clock=2GHz")
        self.assertEqual(other.returncode, 2)
        self.assertIn("of another model, machine", other.stderr)

    def test_a_price_that_nobody_pays_is_refused(self):
        prices = self.new_folder() / "prices.txt"
        for price in ("-1.34", "0"):
            prices.write_text(f"# dollars an hour\ntrn1.2xlarge = {price} | documented | here\n")
            done = trellis("train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "16", "--prices", prices, *sets(**MODEL))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{prices}: line 2: trn1.2xlarge = {price}: expected dollars an hour above 0", done.stderr)

    def test_a_search_that_cannot_write_its_picture_does_not_begin(self):
        done = trellis("train", "search", CONFIG, "-m", "trn1.2xlarge", "-g", "16", "-o", self.new_folder() / "none" / "x.svg",
                       *sets(**MODEL))
        self.assertEqual(done.stdout, "")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot write", done.stderr)

    def test_points_of_several_machines_lie_beside_each_other(self):
        folder = self.new_folder()
        (folder / "mine.machine").write_text("like trn1.2xlarge\n")
        done = trellis("train", "search", CONFIG, "-m", "trn1.2xlarge", "-m", folder / "mine.machine", "-g", "16", "--points",
                       folder / "points", *sets(**MODEL))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list(folder.glob("points.*"))), 2)


if __name__ == "__main__":
    unittest.main()
