"""A small training run: the example's configuration, made smaller still."""
import functools
import os
import pathlib

import program

CONFIG = str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples" / "llama.yaml")
TEXT = str(pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "README.md")
SMALL = {"data.train_path": TEXT, "data.seq_length": 32, "data.micro_batch_size": 1, "data.global_batch_size": 4,
         "model.hidden_size": 32, "model.num_layers": 2, "model.intermediate_size": 64, "trainer.max_steps": 12,
         "trainer.log_every_n_steps": 1}


def sets(**more):
    values = SMALL | {key.replace("__", "."): value for key, value in more.items()}
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


trellis = functools.partial(program.trellis, timeout=600)
