"""Records of files: Parquet, Arrow (files and streams, as Hugging Face's datasets have them), lines of JSON, text.

A place in a file is a number: a row group, a batch, or a byte. Reading goes on from any that was given with a record.
"""

import gzip
import json
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from trellis.train.prepare.wrong import Wrong, needed

__all__ = ["Block", "files_of", "kind_of", "read"]

Record = dict[str, Any]
# Records that lie together, the place after them, the number of the first, counted from 1, and how much of the file
# is read then, from 0 to 1.
Block = tuple[list[Record], int, int, float]

_JSON_BLOCK = 1 << 22  # bytes
_GZIP = b"\x1f\x8b"
_ENDINGS = (".parquet", ".arrow", ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".txt")
_SHARD = re.compile(r"^(.*)-(\d{5})-of-(\d{5})(\..*)$")
# Words of names, as `datasets` reads them, and the split that each stands for.
_SPLITS = {"train": "train", "training": "train", "test": "test", "testing": "test", "eval": "test",
           "evaluation": "test", "validation": "validation", "valid": "validation", "val": "validation",
           "dev": "validation"}  # fmt: skip


def kind_of(path: pathlib.Path) -> str:
    """By what it begins with: parquet, arrow, stream, text or json."""
    with _opened(path) as file:
        head = file.read(8)
    for begin, kind in ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "stream")):
        if head.startswith(begin):
            return kind
    if path.name.endswith((".parquet", ".arrow")):
        raise Wrong(f"{path} is damaged: it does not begin as a {path.suffix} file does")
    return "text" if path.name.endswith(".txt") else "json"


def _opened(path: pathlib.Path) -> IO[bytes]:
    try:
        plain = path.open("rb")  # noqa: SIM115
    except OSError as e:
        raise Wrong(f"{path}: {e.strerror}") from e
    head = plain.read(2)
    plain.seek(0)
    if head != _GZIP:
        return plain
    plain.close()
    return gzip.open(path, "rb")  # type: ignore[return-value]  # noqa: SIM115


def _split_of(path: pathlib.Path, source: pathlib.Path) -> str:
    """What comes before a shard's number, or a word of the file's name or of a folder's; empty: nothing says it."""
    shard = _SHARD.match(path.name)
    for name in (path.name, *reversed(path.relative_to(source).parent.parts)):
        said = next((word for word in re.split(r"[^a-z]+", name.lower()) if word in _SPLITS), "")
        if said:
            return _SPLITS.get(shard[1].lower(), shard[1]) if shard and name == path.name else _SPLITS[said]
    return shard[1] if shard else ""


def _missing_split(source: pathlib.Path, split: str, splits: Iterable[str]) -> Wrong:
    named = ", ".join(filter(None, splits))
    nameless = "no name in it says of which one a file is, leave --split out or name the files"
    expected = f"expected one of {named}, by --split, or name the files" if named else nameless
    return Wrong(f"{source} has no split {split!r}: {expected}")


def files_of(source: pathlib.Path, split: str | None) -> tuple[list[pathlib.Path], str]:
    """A file is itself; a folder, the files of a data set's split in it. None: train, or the only one. And a line,
    where other files are left out."""
    if not source.exists():
        raise Wrong(f"{source}: no such file or folder")
    if not source.is_dir():
        return [source], ""
    wanted = split or "train"
    if (source / "dataset_dict.json").exists():
        splits = json.loads((source / "dataset_dict.json").read_text())["splits"]
        if wanted not in splits:
            raise _missing_split(source, wanted, splits)
        return files_of(source / wanted, None)
    if (source / "state.json").exists():  # of datasets' save_to_disk
        state = json.loads((source / "state.json").read_text())
        if split and (said := state.get("_split")) and said != split:
            raise _missing_split(source, split, [said])
        return _all_there([source / each["filename"] for each in state["_data_files"]], source), ""
    found: list[pathlib.Path] = []
    for ending in _ENDINGS:
        found = sorted(path for path in source.rglob(f"*{ending}") if not path.name.startswith("."))
        if found:
            break
    if not found:
        raise Wrong(f"{source} has no files of data: expected some that end in {', '.join(_ENDINGS)}")
    of_split: dict[str, list[pathlib.Path]] = {}
    for path in found:
        of_split.setdefault(_split_of(path, source), []).append(path)
    wanted = _SPLITS.get(wanted, wanted)
    if wanted not in of_split and (split or len(of_split) > 1):
        raise _missing_split(source, split or wanted, sorted(of_split))
    taken = of_split.get(wanted, found)
    left = f"{len(taken)} of {len(found)} files of {source}, of split {wanted}" if len(taken) < len(found) else ""
    return _all_there(taken, source), left


def _all_there(files: list[pathlib.Path], source: pathlib.Path) -> list[pathlib.Path]:
    for path in list(files):
        if match := _SHARD.match(path.name):
            shards = [f"{match[1]}-{i:05}-of-{match[3]}{match[4]}" for i in range(int(match[3]))]
            files += [path.parent / name for name in shards if path.parent / name not in files]
    missing = [path.name for path in files if not path.exists()]
    if missing:
        raise Wrong(f"{source}: {', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''} of {len(files)} missing")
    return files


def read(path: pathlib.Path, place: int, first: int) -> Iterator[Block]:
    """From a place on. first: the number of the record there, counted from 1."""
    kind = kind_of(path)
    if kind == "json":
        yield from _read_json(path, place, first)
    elif kind == "text":
        if place == 0:
            try:
                yield [{"text": _opened(path).read().decode()}], 1, first, 1
            except UnicodeDecodeError as e:
                raise Wrong(f"{path}: byte {e.start} is no UTF-8") from e
    else:
        arrow = needed("pyarrow", f"{path}: reading a {'Parquet' if kind == 'parquet' else 'Arrow'} file")
        try:
            yield from _read_arrow(path, kind, place, first)
        except (arrow.ArrowInvalid, OSError) as e:
            raise Wrong(f"{path} is damaged or was cut short: {str(e).splitlines()[0]}") from e


def _read_json(path: pathlib.Path, place: int, first: int) -> Iterator[Block]:
    size = max(path.stat().st_size, 1)
    with _opened(path) as file:
        packed = isinstance(file, gzip.GzipFile)
        try:
            line = 1 + _lines_before(file, place)
            while lines := file.readlines(_JSON_BLOCK):
                records = [_parsed(text, path, line + i) for i, text in enumerate(lines) if text.strip()]
                place += sum(map(len, lines))
                done = file.fileobj.tell() if packed else place  # type: ignore[attr-defined]
                yield records, place, first, min(1, done / size)
                first += len(records)
                line += len(lines)
        except (EOFError, gzip.BadGzipFile) as e:
            raise Wrong(f"{path} is damaged or was cut short: {e}") from e


def _lines_before(file: IO[bytes], place: int) -> int:
    """Reads up to the place."""
    lines = 0
    while place > 0 and (some := file.read(min(place, _JSON_BLOCK))):
        lines += some.count(b"\n")
        place -= len(some)
    return lines


def _parsed(line: bytes, path: pathlib.Path, number: int) -> Record:
    try:
        record = json.loads(line)
    except ValueError as e:
        raise Wrong(f"{path}, line {number} is no JSON: {e}") from e
    if not isinstance(record, dict):
        raise Wrong(f"{path}, line {number}: expected an object, as {{\"text\": ...}}")
    return record


def _read_arrow(path: pathlib.Path, kind: str, place: int, first: int) -> Iterator[Block]:
    if kind == "parquet":
        file = needed("pyarrow.parquet", "").ParquetFile(path)
        for i in range(place, file.num_row_groups):
            records = file.read_row_group(i).to_pylist()
            yield records, i + 1, first, (i + 1) / file.num_row_groups
            first += len(records)
        return
    ipc = needed("pyarrow.ipc", "")
    if kind == "arrow":
        batches = ipc.open_file(path)
        for i in range(place, batches.num_record_batches):
            records = batches.get_batch(i).to_pylist()
            yield records, i + 1, first, (i + 1) / batches.num_record_batches
            first += len(records)
        return
    size = max(path.stat().st_size, 1)
    with path.open("rb") as stream:
        for i, batch in enumerate(ipc.open_stream(stream)):
            if i >= place:
                yield batch.to_pylist(), i + 1, first, min(1, stream.tell() / size)
                first += batch.num_rows
