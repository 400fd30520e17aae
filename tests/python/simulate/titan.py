"""A folder in which torchtitan's jobs run: a tokenizer, and a text to train on. Its configurations are those of its
repository's train_configs, as options."""

import json
import pathlib

__all__ = ["command", "prepare"]

# Of the repository, beside the model's flavour: sequences of 8,192 by a rank, recomputation.
CONFIGS = {
    "8B": (64, 8, 1, "selective"),  # ranks, tensor parallelism, sequences of a rank, recomputation
    "70B": (512, 8, 8, "full"),
    "405B": (4096, 8, 2, "full"),
    "debugmodel": (8, 1, 4, "none"),
}


def prepare(folder: pathlib.Path, flavor: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    text = ["a schedule says what moves, and a simulator says how long it takes"] * 64
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(text, trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"]))
    (folder / "tokenizer").mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    told = {"bos_token": "<s>", "eos_token": "</s>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(told))
    (folder / "text").mkdir()
    lines = [json.dumps({"text": " ".join(text)}) for _ in range(CONFIGS[flavor][0])]
    (folder / "text" / "data.json").write_text("\n".join(lines))


def command(folder: pathlib.Path, flavor: str, *more: str) -> list[str]:
    return ["torchrun", "-m", "torchtitan.train", *arguments(folder, flavor, *more)]


def arguments(folder: pathlib.Path, flavor: str, *more: str) -> list[str]:
    _, tensor, sequences, recompute = CONFIGS[flavor]
    return ["--model.name", "llama3", "--model.flavor", flavor,
            "--model.hf-assets-path", str(folder / "tokenizer"), "--training.dataset-path", str(folder / "text"),
            "--job.dump-folder", str(folder / "out"), "--training.seq-len", "8192",
            "--training.local-batch-size", str(sequences), "--training.steps", "5", "--metrics.log-freq", "1",
            "--parallelism.tensor-parallel-degree", str(tensor), "--activation-checkpoint.mode", recompute,
            *more]  # fmt: skip
