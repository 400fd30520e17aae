"""Tokenizers: Hugging Face's tokenizer.json, sentencepiece's tokenizer.model, or bytes."""

import json
import pathlib
import re
import zlib
from dataclasses import dataclass
from typing import Any

from trellis.train.prepare.wrong import Wrong, needed

__all__ = ["Tokenizer", "tokenizer_of"]

Spans = list[tuple[int, int, int]]  # tokens, with the characters of the text that each stands for


def _object(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise Wrong(f"{path} is no JSON: {e}") from e
    return read if isinstance(read, dict) else {}


def _settings(folder: pathlib.Path) -> dict[str, Any]:
    """What tokenizer_config.json says, and what older folders have in a file of its own."""
    older, said = _object(folder / "special_tokens_map.json"), _object(folder / "tokenizer_config.json")
    return {**older, **{name: value for name, value in said.items() if value is not None or name not in older}}


def _template(folder: pathlib.Path, settings: dict[str, Any]) -> str:
    beside = folder / "chat_template.jinja"
    if beside.exists():
        return beside.read_text(encoding="utf-8")
    template = settings.get("chat_template") or ""
    if isinstance(template, list):  # several, by name
        template = next((each["template"] for each in template if each.get("name") == "default"), "")
    return str(template)


def _word(value: Any) -> str:
    """A special token, as text or as an object with content."""
    return str(value.get("content", "")) if isinstance(value, dict) else str(value or "")


class Tokenizer:
    """Bytes, each a token; the end of a document is token 256."""

    def __init__(self) -> None:
        self.size, self.end, self.begin = 257, 256, -1
        self.name, self.checksum = "bytes", 0
        self.words: dict[str, str] = {}  # of special tokens, for templates
        self.template = ""

    def encode(self, texts: list[str]) -> list[Spans]:
        return [[(byte, i, i + 1) for i, letter in enumerate(text) for byte in letter.encode()] for text in texts]

    def prompt(self, text: str) -> list[int]:
        """With the special tokens before it that a model expects."""
        return list(text.encode())

    def decode(self, tokens: list[int]) -> str:
        """Without special tokens."""
        return bytes(token for token in tokens if token < 256).decode(errors="replace")


class _HuggingFace(Tokenizer):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        tokenizers = needed("tokenizers", f"{path}: Hugging Face's tokenizer")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as e:  # tokenizers raises Exception itself
            raise Wrong(f"{path} is no tokenizer: {e}") from e
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name, self.checksum = str(path), zlib.crc32(path.read_bytes())
        self.size = self._tokenizer.get_vocab_size(with_added_tokens=True)
        settings = _settings(path.parent)
        for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
            self.words[name] = _word(settings.get(name))
        self.end = self._id(self.words["eos_token"])
        self.begin = self._id(self.words["bos_token"])
        self.template = _template(path.parent, settings)

    def _id(self, word: str) -> int:
        found = self._tokenizer.token_to_id(word) if word else None
        return -1 if found is None else int(found)

    def encode(self, texts: list[str]) -> list[Spans]:
        return [
            [(token, *offsets) for token, offsets in zip(each.ids, each.offsets, strict=True)]
            for each in self._tokenizer.encode_batch(texts, add_special_tokens=False)
        ]

    def prompt(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


@dataclass(frozen=True)
class _Added:
    """A token that sentencepiece's file does not have, or takes for letters where it stands in a text."""

    word: str
    special: bool = True
    left: bool = False  # takes the blanks before it
    right: bool = False


# Behind a ModelProto: normalizer_spec { add_dummy_prefix: false }. A message's later fields replace its earlier ones.
_NO_PREFIX = bytes([3 << 3 | 2, 2, 3 << 3, 0])


class _SentencePiece(Tokenizer):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        sentencepiece = needed("sentencepiece", f"{path}: a tokenizer of sentencepiece")
        model = path.read_bytes()
        try:
            self._first = sentencepiece.SentencePieceProcessor(model_proto=model)
            self._later = sentencepiece.SentencePieceProcessor(model_proto=model + _NO_PREFIX)
        except (RuntimeError, OSError) as e:
            raise Wrong(f"{path} is no tokenizer of sentencepiece: {str(e).strip()}") from e
        settings = _settings(path.parent)
        if settings.get("legacy"):  # a prefix behind each special token
            self._later = self._first
        self.name, self.checksum = str(path), zlib.crc32(model)
        self.template = _template(path.parent, settings)
        self._begins = bool(settings.get("add_bos_token", True))
        self._added: dict[int, _Added] = {}
        numbers = {"bos_token": self._first.bos_id(), "eos_token": self._first.eos_id(),
                   "pad_token": self._first.pad_id(), "unk_token": self._first.unk_id()}  # fmt: skip
        for name, number in numbers.items():
            own = self._first.id_to_piece(number) if number >= 0 else ""
            self.words[name] = _word(settings.get(name)) or own
            if own:
                self._added[number] = _Added(own)
        self._read_added(path.parent, settings)
        self.size = max(self._first.vocab_size(), *(number + 1 for number in self._added))
        by_word = {each.word: number for number, each in self._added.items()}
        self.end, self.begin = (by_word.get(self.words[name], -1) for name in ("eos_token", "bos_token"))
        patterns = [
            ("\\s*" if each.left else "") + f"({re.escape(each.word)})" + ("\\s*" if each.right else "")
            for each in sorted(self._added.values(), key=lambda one: -len(one.word))
        ]
        self._pattern, self._by_word = re.compile("|".join(patterns)), by_word

    def _read_added(self, folder: pathlib.Path, settings: dict[str, Any]) -> None:
        for number, said in (settings.get("added_tokens_decoder") or {}).items():
            self._added[int(number)] = _Added(_word(said), bool(said.get("special")), bool(said.get("lstrip")),
                                              bool(said.get("rstrip")))  # fmt: skip
        for word, number in _object(folder / "added_tokens.json").items():
            self._added.setdefault(int(number), _Added(word, False))
        # Special tokens that are named and were in the model all along.
        for word in (*self.words.values(), *map(_word, settings.get("additional_special_tokens") or [])):
            number = self._first.piece_to_id(word) if word else self._first.unk_id()
            if number != self._first.unk_id() and all(each.word != word for each in self._added.values()):
                self._added[number] = _Added(word)

    def _pieces(self, texts: list[str], first: bool = True) -> list[Spans]:
        processor = self._first if first else self._later
        if hasattr(processor, "EncodeAsImmutableProto"):  # before 0.2.2
            encoded = processor.encode(texts, out_type="immutable_proto")
            return [[(piece.id, piece.begin, piece.end) for piece in each.pieces] for each in encoded]
        encoded = processor.encode(texts, out_type="offset_mapping")
        return [[(token, *at) for token, at in zip(each["ids"], each["offsets"], strict=True)] for each in encoded]

    def _spans(self, text: str) -> Spans:
        """Of a text with tokens that are no letters of it."""
        spans: Spans = []
        at = 0
        for found in [*self._pattern.finditer(text), None]:
            piece = text[at : found.start() if found else len(text)]
            if piece:
                spans += [(token, at + a, at + b) for token, a, b in self._pieces([piece], at == 0)[0]]
            if found:
                word = next(group for group in found.groups() if group)
                spans.append((self._by_word[word], found.start(), found.end()))
                at = found.end()
        return spans

    def encode(self, texts: list[str]) -> list[Spans]:
        mixed = {i: self._spans(text) for i, text in enumerate(texts) if self._pattern.search(text)}
        plain = iter(self._pieces([text for i, text in enumerate(texts) if i not in mixed]))
        return [mixed[i] if i in mixed else next(plain) for i in range(len(texts))]

    def prompt(self, text: str) -> list[int]:
        begins = self._begins and self.begin >= 0
        return ([self.begin] if begins else []) + [token for token, _, _ in self.encode([text])[0]]

    def decode(self, tokens: list[int]) -> str:
        """What is no token, as of a vocabulary that was padded, is no text."""
        said, run = "", list[int]()
        for token in [*tokens, -1]:
            added = self._added.get(token)
            if added is None and 0 <= token < self._first.vocab_size():
                run.append(token)
                continue
            said += str((self._later if said else self._first).decode(run)) if run else ""
            run = []
            said += added.word if added and not added.special else ""
        return said


def tokenizer_of(where: str) -> Tokenizer:
    """A folder with tokenizer.json or tokenizer.model, such a file, or the word bytes."""
    path = pathlib.Path(where)
    if where == "bytes" and not path.exists():
        return Tokenizer()
    if path.is_dir():
        for name in ("tokenizer.json", "tokenizer.model", "spiece.model"):
            if (path / name).exists():
                return tokenizer_of(str(path / name))
        raise Wrong(f"--tokenizer {where}: expected tokenizer.json or tokenizer.model in the folder")
    if not path.exists():
        raise Wrong(f"--tokenizer {where}: no such file or folder; expected one, or bytes")
    return _HuggingFace(path) if path.suffix == ".json" else _SentencePiece(path)
