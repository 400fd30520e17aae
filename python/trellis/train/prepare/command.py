"""Makes tokens of Arrow, Parquet, lines of JSON and text, for `trellis train` and for Megatron.

    python3 -m trellis.train prepare data/ --tokenizer Llama-3.2-1B -o tokens

SOURCE is a file, or a folder of a data set as Hugging Face's hub and datasets have them. Records are text, a prompt and
a response, messages of a chat, or input_ids. OUT.bin and OUT.idx are Megatron's; OUT.mask says which tokens are to be
predicted: of prompts none, of chats what the assistant says. Name OUT as data.train_path. An interrupted command goes
on where it was when it is given again.
"""

import argparse
import pathlib
import sys
import time
from typing import Any

from trellis.train.prepare.chat import Template
from trellis.train.prepare.parts import Parts, width_of
from trellis.train.prepare.records import FORMS, Document, Reader
from trellis.train.prepare.sources import files_of, read
from trellis.train.prepare.tokenizer import Spans, Tokenizer, tokenizer_of
from trellis.train.prepare.wrong import Wrong

__all__ = ["main"]

_TOKENS_OF_PART = 1 << 22
_AT_ONCE = 1024  # records


def _options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", nargs="+", help="files or folders, one after the other")
    add("--tokenizer", required=True, help="a folder with tokenizer.json or tokenizer.model, such a file, or bytes")
    add("-o", "--output", required=True, metavar="OUT", help="OUT.bin, OUT.idx and, of prompts and chats, OUT.mask")
    add("--split", help="of a data set with several [train]")
    add("--form", choices=FORMS, default="", help="of the records [as the first one looks]")
    add("--column", default="", help="of text [text]")
    add("--chat-template", metavar="FILE", help="in Jinja [the tokenizer's]")
    add("--bos", action="store_true", help="begin each document with the tokenizer's bos_token")
    add("--no-eos", action="store_true", help="do not end each document with its eos_token")
    add("--limit", type=int, default=0, help="so many records of each file at most [all]")
    add("--force", action="store_true", help="replace OUT where it is of something else")
    add("--restart", action="store_true", help="begin anew where an interrupted command has left parts")


class _Progress:
    """A line on a terminal; elsewhere one every ten seconds. On standard error."""

    def __init__(self) -> None:
        self.begin = self.last = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def say(self, text: str, tokens: int) -> None:
        now = time.monotonic()
        if now - self.last < (0.2 if self.terminal else 10):
            return
        self.last = now
        line = f"{text}, {tokens:,} tokens, {tokens / (now - self.begin):,.0f}/s"
        shown, end = (f"\r{line}\033[K", "") if self.terminal else (line, "\n")
        print(shown, end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


class _Preparing:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.tokenizer: Tokenizer = tokenizer_of(given.tokenizer)
        if not given.no_eos and self.tokenizer.end < 0:
            raise Wrong(f"--tokenizer {given.tokenizer} names no eos_token: expected one, or --no-eos")
        if given.bos and self.tokenizer.begin < 0:
            raise Wrong(f"--bos: --tokenizer {given.tokenizer} names no bos_token")
        self.files: list[pathlib.Path] = []
        for source in given.source:
            files, left = files_of(pathlib.Path(source), given.split)
            self.files += files
            if left:
                print(left, file=sys.stderr)
        template = pathlib.Path(given.chat_template).read_text() if given.chat_template else self.tokenizer.template
        self.reader = Reader(
            given.form, given.column, Template(template, self.tokenizer.words) if template else None)  # fmt: skip
        plan: dict[str, Any] = {
            "sources": [[str(path), path.stat().st_size] for path in self.files],
            "tokenizer": [self.tokenizer.name, self.tokenizer.checksum, self.tokenizer.size],
            "form": given.form, "column": given.column, "template": template if given.chat_template else "",
            "bos": given.bos, "eos": not given.no_eos, "limit": given.limit,
            "width": width_of(self.tokenizer.size),
        }  # fmt: skip
        self.parts = Parts(pathlib.Path(given.output), plan)
        self.progress = _Progress()
        self.tokens = self.documents = self.empty = 0

    def run(self) -> str:
        parts, given = self.parts, self.given
        if parts.finished():
            return f"{given.output} is made of these already"
        if parts.ending(".bin").exists() and not given.force:
            raise Wrong(f"{parts.ending('.bin')} is there, of something else: --force replaces it")
        parts.open(given.restart)
        at = {"file": 0, "place": 0, "record": 1, "form": given.form, "empty": 0}
        if parts.done:
            at = {key: parts.done[-1][key] for key in at}
            print(f"{len(parts.done)} parts are done, of {len(self.files[: at['file']])} whole files", file=sys.stderr)
        self.reader.form, self.empty = at["form"], at["empty"]
        for i in range(at["file"], len(self.files)):
            self._file(i, *((at["place"], at["record"]) if i == at["file"] else (0, 1)))
        self._close(len(self.files), 0, 1)
        self.tokens = sum(part["tokens"] for part in parts.done)
        self.documents = sum(part["documents"] for part in parts.done)
        if self.tokens == 0:
            parts.drop()
            raise Wrong(f"{', '.join(given.source)}: no record has a token")
        parts.finish({"documents": self.documents, "tokens": self.tokens, "vocab_size": self.tokenizer.size})
        self.progress.clear()
        said = f"{self.documents:,} documents, {self.tokens:,} tokens of {self.tokenizer.size:,}"
        if self.empty:
            said += f"; {self.empty} empty records left out"
        if self.reader.template is not None and self.reader.template.skipped:
            said += f"; {self.reader.template.skipped} messages of the assistant are not predicted, as the template "
            said += "alters them later or has no prompt for them"
        return (f"{said}\ntrellis train CONFIG.yaml --set data.train_path={given.output}.bin "
                f"--set model.vocab_size={self.tokenizer.size}")  # fmt: skip

    def _file(self, i: int, place: int, first: int) -> None:
        path = self.files[i]
        for records, after, number, done in read(path, place, first):
            left = self.given.limit + 1 - number if self.given.limit else len(records)
            for begin in range(0, max(0, min(len(records), left)), _AT_ONCE):
                some = records[begin : min(begin + _AT_ONCE, left)]
                where = [f"{path}, record {number + begin + k}" for k in range(len(some))]
                self._add([self.reader.read(record, at) for record, at in zip(some, where, strict=True)])
            if self.parts.masked is None:
                self.parts.masked = self.reader.masked
            self.progress.say(f"file {i + 1}/{len(self.files)}, {100 * done:.0f}%", self.tokens)
            if sum(map(len, self.parts._documents)) >= _TOKENS_OF_PART:
                self._close(i, after, number + len(records))
            if left <= len(records) and self.given.limit:
                break
        if self.parts._documents:
            self._close(i + 1, 0, 1)

    def _close(self, file: int, place: int, record: int) -> None:
        at = {"file": file, "place": place, "record": record}
        self.parts.close_part({**at, "form": self.reader.form, "empty": self.empty})

    def _add(self, documents: list[Document]) -> None:
        if self.parts.masked is None:
            self.parts.masked = self.reader.masked
        texts = iter(self.tokenizer.encode([each.text for each in documents if each.tokens is None]))
        for each in documents:
            tokens, mask = (each.tokens, each.mask) if each.tokens is not None else self._masked(next(texts), each)
            if not tokens:
                self.empty += 1
                continue
            if each.tokens is not None and (min(tokens) < 0 or max(tokens) >= self.tokenizer.size):
                wrong = min(tokens) if min(tokens) < 0 else max(tokens)
                raise Wrong(f"input_ids have {wrong}: the tokenizer has {self.tokenizer.size} tokens")
            self.parts.add(tokens, mask)
            self.tokens += len(tokens)

    def _masked(self, spans: Spans, document: Document) -> tuple[list[int], list[int] | None]:
        tokens = [token for token, _, _ in spans]
        counted = document.counted
        # A token that begins before a stretch and reaches into it is predicted: it has the first letters of an answer.
        mask = None if counted is None else [
            int(any(at < b and (at >= a or end > a) for a, b in counted)) for _, at, end in spans]  # fmt: skip
        if not tokens:
            return tokens, mask
        if self.given.bos and tokens[0] != self.tokenizer.begin:
            tokens.insert(0, self.tokenizer.begin)
            if mask is not None:
                mask.insert(0, 0)
        if not self.given.no_eos and not document.ended and tokens[-1] != self.tokenizer.end:
            tokens.append(self.tokenizer.end)
            if mask is not None:
                mask.append(mask[-1])
        return tokens, mask


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m trellis.train prepare", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    _options(parser)
    given = parser.parse_args(words)
    try:
        print(_Preparing(given).run())
    except Wrong as e:
        print(f"trellis.train prepare: {e}", file=sys.stderr)
        return 1
    except OSError as e:
        print(f"trellis.train prepare: {e.filename}: {e.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from the last whole part", file=sys.stderr)
        return 130
    return 0
