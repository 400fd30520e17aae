"""Folders of Hugging Face: shown, trained from, exported, evaluated and continued by the program, and named where they are damaged."""
import json
import os
import pathlib
import random
import struct
import unittest

import program
from small_run import TEXT, trellis

HIDDEN, INNER, LAYERS, HEADS, GROUPS, WORDS = 32, 48, 2, 4, 2, 256
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": INNER,
          "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "vocab_size": WORDS, "rms_norm_eps": 1e-5,
          "max_position_embeddings": 64, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "float32", "eos_token_id": 10,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 16}}


def shapes():
    kv = HIDDEN // HEADS * GROUPS
    yield "model.embed_tokens.weight", (WORDS, HIDDEN)
    for i in range(LAYERS):
        for name, shape in {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (kv, HIDDEN), "self_attn.v_proj": (kv, HIDDEN),
                            "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
                            "mlp.down_proj": (HIDDEN, INNER), "input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,)}.items():
            yield f"model.layers.{i}.{name}.weight", shape
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (WORDS, HIDDEN)


def put_safetensors(path, tensors):
    header, data = {}, b""
    for name, shape, values in tensors:
        more = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def put_folder(path):
    path.mkdir()
    draw = random.Random(1)
    tensors = []
    for name, shape in shapes():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors.append((name, shape, [1.0] * count if "norm" in name else [draw.gauss(0, 0.1) for _ in range(count)]))
    files = [f"model-{i + 1:05}-of-00002.safetensors" for i in range(2)]
    for i, file in enumerate(files):
        put_safetensors(path / file, tensors[i::2])
    index = {"weight_map": {name: files[i % 2] for i, (name, *_) in enumerate(tensors)}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))
    (path / "config.json").write_text(json.dumps(CONFIG))
    (path / "tokenizer_config.json").write_text("{}")


def bytes_by_name(folder):
    found = {}
    for file in folder.glob("*.safetensors"):
        raw = file.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        for name, said in json.loads(raw[8:8 + size]).items():
            if name != "__metadata__":
                first, last = said["data_offsets"]
                found[name] = (tuple(said["shape"]), raw[8 + size + first:8 + size + last])
    return found


class HfFolder(program.Case):
    def setUp(self):
        self.root = pathlib.Path(self.new_folder())
        self.folder = self.root / "tiny"
        put_folder(self.folder)

    def right(self, *words):
        ran = trellis(*words)
        self.assertEqual(ran.returncode, 0, (words, ran.stdout, ran.stderr))
        return ran.stdout

    def wrong(self, *words):
        ran = trellis(*words)
        self.assertNotEqual(ran.returncode, 0, ran.stdout)
        self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)
        return ran.stderr

    def test_it_is_shown_trained_from_and_written_again(self):
        shown = self.right("train", "show", self.folder, "--ranks", "2")
        self.assertIn("proved", shown)
        self.assertIn("data.global_batch_size is 2, a micro-batch for each data-parallel rank", shown)
        shown = self.right("train", "show", self.folder, "--ranks", "2", "--set", "data.global_batch_size=4")
        self.assertNotIn("global_batch_size", shown)
        priced = self.right("train", "price", self.folder, "-m", "trn1.2xlarge")
        self.assertTrue(priced.startswith(f"{self.folder.name} on trn1.2xlarge: 2 ranks"), priced)
        sets = [word for pair in {"data.train_path": TEXT, "data.seq_length": 32, "data.global_batch_size": 4, "trainer.max_steps": 3,
                                  "exp_manager.exp_dir": self.root / "runs", "name": "tuned"}.items() for word in ("--set", f"{pair[0]}={pair[1]}")]
        said = self.right("train", self.folder, *sets)
        self.assertIn(f"loaded {self.folder} (weights)", said)
        self.assertNotIn("have no place", said)
        tag = self.root / "runs/tuned/checkpoints/step_00000003"
        said = self.right("train", "checkpoint", "hf", tag, "-o", self.root / "out")
        self.assertIn("tokenizer_config.json", said)
        before, after = bytes_by_name(self.folder), bytes_by_name(self.root / "out")
        self.assertEqual({n: s for n, (s, _) in before.items()}, {n: s for n, (s, _) in after.items()})
        self.assertNotEqual(before, after)
        config = json.loads((self.root / "out/config.json").read_text())
        self.assertEqual(config, CONFIG)
        # What was not trained comes out as it went in.
        self.right("train", "checkpoint", "hf", self.folder, "-o", self.root / "same", "--file-size", "50KB")
        self.assertEqual(before, bytes_by_name(self.root / "same"))
        self.assertGreater(len(list((self.root / "same").glob("*.safetensors"))), 2)
        # Evaluation of the trained one finds what training came to; its weights are those of the tag.
        losses = [json.loads(self.right("train", "eval", of, "--data", TEXT, "--json", "--set", "trainer.limit_val_batches=8", "--set",
                                        "data.seq_length=32"))["loss"] for of in (self.folder, tag, self.root / "out")]
        self.assertLess(losses[1], losses[0])
        self.assertAlmostEqual(losses[1], losses[2], places=6)

    def test_it_continues_a_prompt_in_any_layout(self):
        one = self.right("train", "generate", self.folder, "--tokens", "1 2 3", "-n", "20")
        self.assertEqual(len(one.split()), 20)
        for sets in (["distributed_strategy.tensor_model_parallel_size=2"], ["distributed_strategy.pipeline_model_parallel_size=2"]):
            launched = trellis("launch", "--raw", "-n", "2", "--", program.TRELLIS, "train", "generate", self.folder, "--tokens", "1 2 3", "-n", "20",
                               *[word for each in sets for word in ("--set", each)])
            self.assertEqual((launched.returncode, launched.stdout), (0, one), launched.stderr)
        drawn = self.right("train", "generate", self.folder, "-p", "A text", "-n", "8", "--temperature", "1.5", "--seed", "3")
        self.assertTrue(drawn.startswith("A text"), drawn)

    def test_what_is_wrong_is_one_line(self):
        generate = ["train", "generate", self.folder, "--tokens"]
        self.assertIn("token 256: expected 0 to 255", self.wrong(*generate, "256"))
        self.assertIn("'x' is no token's number", self.wrong(*generate, "1 x"))
        self.assertIn("top-p is 2", self.wrong(*generate, "1", "--top-p", "2"))
        self.assertIn("expected --prompt TEXT, or --tokens NUMBERS", self.wrong("train", "generate", self.folder))
        for count in ("0", "-1"):
            self.assertIn("--count", self.wrong(*generate, "1 2", "-n", count))
        self.assertIn("--data is missing", self.wrong("train", "eval", self.folder))
        self.assertIn("is a folder without config.json", self.wrong("train", "show", self.root))
        self.assertIn("is there already", self.wrong("train", "checkpoint", "hf", self.folder, "-o", self.root))
        shard = self.folder / "model-00002-of-00002.safetensors"
        os.truncate(shard, shard.stat().st_size - 4)
        self.assertIn("the file was cut short", self.wrong(*generate, "1"))
        shard.unlink()
        self.assertIn("model-00002-of-00002.safetensors is missing", self.wrong(*generate, "1"))


if __name__ == "__main__":
    unittest.main()
