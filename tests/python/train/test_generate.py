"""`trellis train generate` with the tokenizer of a folder, by a stand-in for the package that reads it."""

import json
import os
import subprocess
import sys

import pytest
from trellis import train
from trellis._where import PROGRAM

# Token n is the word wn; 1 begins a text.
STAND_IN = """
class Tokenizer:
    @staticmethod
    def from_file(path):
        return Tokenizer()
    def no_truncation(self): pass
    no_padding = no_truncation
    def get_vocab_size(self, with_added_tokens): return 64
    def token_to_id(self, word): return None
    def encode(self, text):
        made = Tokenizer()
        made.ids = [1] + [int(word[1:]) for word in text.split()]
        return made
    def decode(self, ids, skip_special_tokens):
        return " ".join(f"w{n}" for n in ids if n != 1)
"""


@pytest.fixture
def folder(tmp_path):
    model = {"architecture": "llama", "vocab_size": 64, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 48}  # fmt: skip
    config = {"name": "run", "model": model, "data": {"seq_length": 16, "global_batch_size": 2}}
    rows = [[(i * 7 + k * 5) % 64 for k in range(17)] for i in range(20)]
    made = train.Trainer(config, max_steps=4, default_root_dir=tmp_path, enable_progress_bar=False)
    made.fit(train_dataloaders=[(row[:-1], row[1:]) for row in rows])
    tag = next((tmp_path / "run" / "checkpoints").glob("step_*"))
    ran = subprocess.run([PROGRAM, "train", "checkpoint", "hf", tag, "-o", tmp_path / "hf"],
                         capture_output=True, text=True, timeout=100)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "hf" / "tokenizer.json").write_text("{}")
    (tmp_path / "packages" / "tokenizers").mkdir(parents=True)
    (tmp_path / "packages" / "tokenizers" / "__init__.py").write_text(STAND_IN)
    return tmp_path / "hf"


def ran(folder, *words, ranks=0):
    path = os.pathsep.join([str(folder.parent / "packages"), *sys.path])
    launched = [PROGRAM, "launch", "--raw", "-n", str(ranks), "--"] if ranks else []
    return subprocess.run(
        [*launched, PROGRAM, "train", "generate", folder, *words], capture_output=True, text=True, timeout=200,
        env={**os.environ, "PYTHONPATH": path, "TRELLIS_PYTHON": sys.executable})  # fmt: skip


def test_text_goes_in_and_comes_out(folder):
    numbers = ran(folder, "--tokens", "1 5 6", "-n", "6")
    assert numbers.returncode == 0, numbers.stderr
    expected = "w5 w6 " + " ".join(f"w{n}" for n in numbers.stdout.split() if n != "1") + "\n"
    said = ran(folder, "-p", "w5 w6", "-n", "6")
    assert (said.returncode, said.stdout) == (0, expected), said.stderr
    two = ran(folder, "-p", "w5 w6", "-n", "6", "--set", "distributed_strategy.tensor_model_parallel_size=2", ranks=2)
    assert (two.returncode, two.stdout) == (0, expected), two.stderr
    # The model says which tokens end a text.
    end = numbers.stdout.split()[1]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [63, int(end)]}))
    ended = ran(folder, "-p", "w5 w6", "-n", "6").stdout
    assert (
        ended
        == "w5 w6 " + " ".join(f"w{n}" for n in numbers.stdout.split()[: numbers.stdout.split().index(end) + 1]) + "\n"
    )


def test_what_is_missing_is_said(folder):
    (folder / "tokenizer.json").unlink()
    assert "vocabulary has 64 tokens" not in ran(folder, "-p", "word", "-n", "1").stderr  # these are bytes
    other = ran(folder, "-p", "w5", "--tokenizer", folder.parent)
    assert other.returncode != 0 and "expected tokenizer.json or tokenizer.model in the folder" in other.stderr
    (folder / "tokenizer.model").write_bytes(b"none")
    missing = ran(folder, "-p", "w5")
    assert missing.returncode != 0 and ("needs" in missing.stderr or "is no tokenizer" in missing.stderr)
