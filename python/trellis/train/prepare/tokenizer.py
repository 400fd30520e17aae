"""Tokenizers: Hugging Face's tokenizer.json, sentencepiece's tokenizer.model, or bytes."""

import json
import pathlib
import zlib
from typing import Any

from trellis.train.prepare.wrong import Wrong, needed

__all__ = ["Tokenizer", "tokenizer_of"]

Spans = list[tuple[int, int, int]]  # tokens, with the characters of the text that each stands for


def _settings(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    if not path.exists():
        return {}
    try:
        read = json.loads(path.read_text())
    except ValueError as e:
        raise Wrong(f"{path} is no JSON: {e}") from e
    return read if isinstance(read, dict) else {}


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
        template = settings.get("chat_template", "")
        if isinstance(template, list):  # several, by name
            template = next((each["template"] for each in template if each.get("name") == "default"), "")
        self.template = str(template or "")
        beside = path.parent / "chat_template.jinja"
        if beside.exists():
            self.template = beside.read_text()

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


class _SentencePiece(Tokenizer):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        sentencepiece = needed("sentencepiece", f"{path}: a tokenizer of sentencepiece")
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as e:
            raise Wrong(f"{path} is no tokenizer of sentencepiece: {str(e).strip()}") from e
        self.name, self.checksum = str(path), zlib.crc32(path.read_bytes())
        self.size = self._processor.vocab_size()
        self.end, self.begin = self._processor.eos_id(), self._processor.bos_id()
        settings = _settings(path.parent)
        self.template = str(settings.get("chat_template") or "")
        self._begins = bool(settings.get("add_bos_token", True))
        for name, number in (("bos_token", self.begin), ("eos_token", self.end)):
            self.words[name] = _word(settings.get(name)) or (self._processor.id_to_piece(number) if number >= 0 else "")

    def encode(self, texts: list[str]) -> list[Spans]:
        if hasattr(self._processor, "EncodeAsImmutableProto"):  # before 0.2.2
            encoded = self._processor.encode(texts, out_type="immutable_proto")
            return [[(piece.id, piece.begin, piece.end) for piece in each.pieces] for each in encoded]
        encoded = self._processor.encode(texts, out_type="offset_mapping")
        return [[(token, *at) for token, at in zip(each["ids"], each["offsets"], strict=True)] for each in encoded]

    def prompt(self, text: str) -> list[int]:
        begins = self._begins and self.begin >= 0
        return ([self.begin] if begins else []) + list(self._processor.encode(text))

    def decode(self, tokens: list[int]) -> str:
        return str(self._processor.decode(tokens))


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
