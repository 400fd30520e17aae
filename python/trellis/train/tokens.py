"""A tokenizer that another program talks with, in lines of JSON: `python3 -m trellis.train tokens DIR`.

The first line says how many tokens there are and which ones end a text. {"text": ...} is answered with its tokens as a
prompt's, {"tokens": [...]} with their text, whatever is wrong with {"error": ...}.
"""

import json
import pathlib
import sys
from typing import Any

from trellis.train.prepare.tokenizer import Tokenizer, tokenizer_of
from trellis.train.prepare.wrong import Wrong

__all__ = ["main"]


def _ends(where: pathlib.Path, tokenizer: Tokenizer) -> list[int]:
    """Of the model, which may have several; else of the tokenizer."""
    for name in ("generation_config.json", "config.json"):
        path = where / name
        said = json.loads(path.read_text()).get("eos_token_id") if path.exists() else None
        if said is not None:
            return [int(one) for one in (said if isinstance(said, list) else [said])]
    return [tokenizer.end] if tokenizer.end >= 0 else []


def _tell(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def main(arguments: list[str]) -> int:
    try:
        tokenizer = tokenizer_of(arguments[0])
        _tell(size=tokenizer.size, ends=_ends(pathlib.Path(arguments[0]), tokenizer))
        for line in sys.stdin:
            asked = json.loads(line)
            if "text" in asked:
                _tell(tokens=tokenizer.prompt(asked["text"]))
            else:
                _tell(text=tokenizer.decode(asked["tokens"]))
    except (Wrong, ValueError, OSError) as e:
        _tell(error=str(e))
        return 1
    return 0
