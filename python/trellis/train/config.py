"""A job's configuration: a YAML file with NxD Training's keys, or a dict of them, and changes."""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from trellis import _native

__all__ = ["Config", "as_config"]

Config = _native.TrainConfig


def _flat(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def as_config(config: str | pathlib.Path | Mapping[str, Any], *changes: Mapping[str, Any]) -> Config:
    """From a file's name, or a dict with sections or with dots: {"model": {"hidden_size": 64}}, {"data.seq_length": 8}.

    Changes are such dicts, and come after what the file says. All mistakes are told together, with ValueError.
    """
    if isinstance(config, Mapping):
        name, text, trees = "the configuration", "", [config, *changes]
    else:
        name, text, trees = str(config), pathlib.Path(config).read_text(), list(changes)
    flat = [f"{key}={_yaml(value)}" for tree in trees for key, value in _flat(tree)]
    return _native.train_config(name, text, flat)


def _yaml(value: Any) -> str:
    """Numbers of numpy and paths, too; JSON is YAML."""
    if isinstance(value, pathlib.PurePath):
        value = str(value)
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):  # 1e-05 is a word to YAML, and read as the number that it is
        return repr(value)
    return json.dumps([str(each) if isinstance(each, pathlib.PurePath) else each for each in value]
                      if isinstance(value, (list, tuple)) else value)  # fmt: skip
