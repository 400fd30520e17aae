"""`python3 -m trellis.train prepare`: records to tokens, masks, what is refused, going on after an interruption."""

import json
import struct

import numpy as np
import pytest
from trellis.train.prepare import command, main, sources
from trellis.train.prepare.tokenizer import tokenizer_of

TEXTS = [f"document {i} " + "word " * (i % 7) for i in range(300)]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def lengths_of(out):
    """As Megatron reads an index: the lengths of its sequences."""
    data = out.read_bytes()
    assert data[:9] == b"MMIDIDX\0\0"
    version, code, sequences, documents = struct.unpack_from("<QBQQ", data, 9)
    assert (version, documents) == (1, sequences + 1)
    lengths = np.frombuffer(data, np.int32, sequences, 34)
    pointers = np.frombuffer(data, np.int64, sequences, 34 + 4 * sequences)
    ends = np.frombuffer(data, np.int64, documents, 34 + 12 * sequences)
    width = {8: 2, 4: 4}[code]
    assert pointers.tolist() == [int(at) * width for at in np.cumsum([0, *lengths[:-1]])]
    assert ends.tolist() == list(range(sequences + 1))
    return lengths.tolist()


def prepared(capsys, *words):
    """What it says: output, then complaints."""
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_bytes_need_no_package(here, capsys):
    put_lines(here / "a.jsonl", [{"text": text} for text in TEXTS])
    code, out, _ = prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")
    assert code == 0 and "data.train_path=a.bin --set model.vocab_size=257" in out
    tokens = np.fromfile("a.bin", np.uint16)
    assert lengths_of(here / "a.idx") == [len(text) + 1 for text in TEXTS]
    assert bytes(tokens[: len(TEXTS[0])].astype(np.uint8)).decode() == TEXTS[0] and tokens[len(TEXTS[0])] == 256
    assert not (here / "a.mask").exists() and not (here / "a.parts").exists()
    assert prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")[1] == "a is made of these already\n"
    code, _, err = prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "--bos", "-o", "a")
    assert code == 1 and "--bos: --tokenizer bytes names no bos_token" in err
    code, _, err = prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "--no-eos", "-o", "a")
    assert code == 1 and "a.bin is there, of something else: --force replaces it" in err


@pytest.mark.parametrize("part", [1, 5, 1 << 22])
def test_a_first_mask_that_comes_late_is_kept(here, capsys, monkeypatch, part):
    """In a later file, and behind 1500 records without labels, in this part or in an earlier one."""
    monkeypatch.setattr(command, "_TOKENS_OF_PART", part)
    put_lines(here / "a.jsonl", [{"input_ids": [1, 2, 3]}])
    put_lines(here / "b.jsonl", [{"input_ids": [4, 5, 6], "labels": [-100, 5, 6]}, {"input_ids": [7]}])
    assert prepared(capsys, "a.jsonl", "b.jsonl", "--tokenizer", "bytes", "-o", "out")[0] == 0
    assert np.fromfile("out.mask", np.uint8).tolist() == [1, 1, 1, 0, 1, 1, 1]
    records = [{"input_ids": [1, 2]}] * 1500 + [{"input_ids": [3, 4], "labels": [-100, 4]}]
    put_lines(here / "c.jsonl", records)
    assert prepared(capsys, "c.jsonl", "--tokenizer", "bytes", "-o", "late")[0] == 0
    assert np.fromfile("late.mask", np.uint8).tolist() == [1, 1] * 1500 + [0, 1]


def test_prompts_are_masked(here, capsys):
    put_lines(here / "a.jsonl", [{"prompt": "ab", "response": "cde"}, {"instruction": "x", "output": "yz"}])
    assert prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")[0] == 0
    assert np.fromfile("a.mask", np.uint8).tolist() == [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupted_command_goes_on(here, capsys, monkeypatch, after):
    for name in ("a", "b"):
        put_lines(here / f"{name}.jsonl", [{"prompt": name, "response": text} for text in TEXTS])
    words = ["a.jsonl", "b.jsonl", "--tokenizer", "bytes", "-o"]
    assert prepared(capsys, *words, "whole")[0] == 0
    monkeypatch.setattr(command, "_TOKENS_OF_PART", 500)
    monkeypatch.setattr("trellis.train.prepare.sources._JSON_BLOCK", 1000)
    close, count = command.Parts.close_part, 0

    def interrupted(self, place):
        nonlocal count
        if count == after:
            raise KeyboardInterrupt
        count += 1
        close(self, place)

    monkeypatch.setattr(command.Parts, "close_part", interrupted)
    code, _, err = prepared(capsys, *words, "cut")
    assert code == 130 and "the same command goes on" in err and not (here / "cut.bin").exists()
    monkeypatch.setattr(command.Parts, "close_part", close)
    code, _, err = prepared(capsys, *words, "cut")
    assert code == 0 and f"{after} parts are done" in err
    for ending in (".bin", ".idx", ".mask"):
        assert (here / f"cut{ending}").read_bytes() == (here / f"whole{ending}").read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"text": 3}\n', "record 1: 'text' is int: expected text"),
        ('{"text": "a"}\n{"text": \n', "a.jsonl, line 2 is no JSON"),
        ("[1]\n", "line 1: expected an object"),
        ('{"txt": "a"}\n', "record 1 has txt: expected text, prompt and response, messages, or input_ids"),
        ('{"messages": []}\n', "expected a list of messages"),
        ('{"messages": [{"role": "user", "content": "x"}]}\n', "messages need a chat template"),
        ('{"input_ids": [1, 300]}\n', "input_ids have 300: the tokenizer has 257 tokens"),
        ('{"input_ids": "x"}\n', "'input_ids' is str: expected a list of whole numbers"),
        ("", "no record has a token"),
        ("PAR1 and no more", "a.jsonl"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(here, capsys, content, words):
    (here / "a.jsonl").write_text(content)
    if content.startswith("PAR1"):
        pytest.importorskip("pyarrow")
    code, _, err = prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")
    assert code == 1 and words in err and err.count("\n") == 1
    assert not (here / "a.bin").exists()
    (here / "a.jsonl").write_text('{"text": "right now"}\n')  # what was left by the failure is not in the way
    assert prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")[0] == 0


def test_data_sets_of_every_form_are_the_same(here, capsys):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"text": TEXTS})
    put_lines(here / "lines.jsonl", [{"text": text} for text in TEXTS])
    (here / "hub").mkdir()
    parquet.write_table(table.slice(0, 150), "hub/train-00000-of-00002.parquet", row_group_size=40)
    parquet.write_table(table.slice(150), "hub/train-00001-of-00002.parquet")
    parquet.write_table(table.slice(0, 10), "hub/test-00000-of-00001.parquet")
    (here / "saved").mkdir()
    with arrow.OSFile("saved/data-00000-of-00001.arrow", "wb") as file, arrow.ipc.new_stream(file, table.schema) as out:
        out.write_table(table, max_chunksize=70)
    (here / "saved" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    with arrow.OSFile("file.arrow", "wb") as file, arrow.ipc.new_file(file, table.schema) as out:
        out.write_table(table, max_chunksize=70)
    made = set()
    for source in ("lines.jsonl", "hub", "saved", "file.arrow"):
        assert prepared(capsys, source, "--tokenizer", "bytes", "-o", "out", "--force")[0] == 0
        made.add((here / "out.bin").read_bytes() + (here / "out.idx").read_bytes())
    assert len(made) == 1
    _, _, err = prepared(capsys, "hub", "--split", "val", "--tokenizer", "bytes", "-o", "x")
    assert "hub has no split 'val': expected one of test, train, by --split" in err
    (here / "hub" / "train-00000-of-00002.parquet").unlink()
    _, _, err = prepared(capsys, "hub", "--tokenizer", "bytes", "-o", "x")
    assert "train-00000-of-00002.parquet of 2 missing" in err
    for name in ("file.arrow", "saved/data-00000-of-00001.arrow", "hub/train-00001-of-00002.parquet"):
        path = here / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        _, _, err = prepared(capsys, name, "--tokenizer", "bytes", "-o", "x")
        assert f"{name} is damaged or was cut short" in err, err


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train.jsonl", "test.jsonl"),
        ("train/a.jsonl", "test/a.jsonl"),
        ("data/en-train_2.jsonl", "data/en-test_2.jsonl"),
        ("train/part-00000-of-00001.jsonl", "test/part-00000-of-00001.jsonl"),
        ("x.train.00000-of-00001.jsonl", "x.Testing.00000-of-00001.jsonl"),
    ],
)
def test_splits_are_told_by_names_of_files_and_folders(here, capsys, train, test):
    for name, text in ((train, "TRAIN"), (test, "TEST")):
        (here / "ds" / name).parent.mkdir(parents=True, exist_ok=True)
        put_lines(here / "ds" / name, [{"text": text}])
    for words, text in (([], b"TRAIN"), (["--split", "train"], b"TRAIN"), (["--split", "test"], b"TEST")):
        code, _, err = prepared(capsys, "ds", *words, "--tokenizer", "bytes", "--no-eos", "-o", "out", "--force")
        assert code == 0, err
        assert np.fromfile("out.bin", np.uint16).astype(np.uint8).tobytes() == text
    code, _, err = prepared(capsys, "ds", "--split", "val", "--tokenizer", "bytes", "-o", "x")
    assert code == 1 and "ds has no split 'val': expected one of test, train, by --split" in err


@pytest.mark.parametrize(
    ("names", "words", "taken", "said"),
    [
        ("train extra", [], 1, "1 of 2 files of ds, of split train"),
        ("training_manuals recipes", [], 1, "1 of 2 files of ds, of split train"),
        ("wiki dev_blogs", [], 0, "expected one of validation, by --split, or name the files"),
        ("wiki evaluation", ["--split", "test"], 1, "1 of 2 files of ds, of split test"),
        ("train evaluation", ["--split", "eval"], 1, "1 of 2 files of ds, of split test"),
        ("train.1 train.2", [], 2, ""),
    ],
)
def test_files_of_a_folder_that_are_left_out_are_told(here, capsys, names, words, taken, said):
    (here / "ds").mkdir()
    for name in names.split():
        put_lines(here / "ds" / f"{name}.jsonl", [{"text": "a"}])
    code, _, err = prepared(capsys, "ds", *words, "--tokenizer", "bytes", "-o", "out")
    assert code == (taken == 0) and said in err and bool(said) == bool(err), err
    assert not taken or len(lengths_of(here / "out.idx")) == taken


def test_a_split_that_no_name_answers_to_is_refused(here, capsys):
    (here / "ds").mkdir()
    put_lines(here / "ds" / "a.jsonl", [{"text": "a"}])
    put_lines(here / "ds" / "latest.jsonl", [{"text": "b"}])
    code, _, err = prepared(capsys, "ds", "--split", "train", "--tokenizer", "bytes", "-o", "x")
    assert code == 1 and "ds has no split 'train': no name in it says of which one a file is" in err
    assert prepared(capsys, "ds", "--tokenizer", "bytes", "-o", "all")[0] == 0
    assert lengths_of(here / "all.idx") == [2, 2]
    # Files of a test are not taken for those that are of no split.
    put_lines(here / "ds" / "test.jsonl", [{"text": "c"}])
    code, _, err = prepared(capsys, "ds", "--tokenizer", "bytes", "-o", "x")
    assert code == 1 and "ds has no split 'train': expected one of test, by --split" in err
    # `datasets` writes down of which split a folder is.
    (here / "ds" / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a.jsonl"}], "_split": "test"}))
    code, _, err = prepared(capsys, "ds", "--split", "train", "--tokenizer", "bytes", "-o", "x")
    assert code == 1 and "ds has no split 'train': expected one of test, by --split" in err
    assert prepared(capsys, "ds", "--split", "test", "--tokenizer", "bytes", "-o", "x")[0] == 0


def test_a_tokenizer_of_hugging_face_and_its_template(here, capsys):
    tokenizers = pytest.importorskip("tokenizers")
    pytest.importorskip("jinja2")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    special = ["</s>", "<|im_start|>", "<|im_end|>"]
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator(TEXTS, trainer)
    (here / "tok").mkdir()
    made.save("tok/tokenizer.json")
    (here / "tok" / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": {"content": "</s>"}, "chat_template": CHATML})
    )
    chat = [{"role": "user", "content": "a word?"}, {"role": "assistant", "content": "document"},
            {"role": "user", "content": "more"}, {"role": "assistant", "content": "no word"}]  # fmt: skip
    put_lines(here / "chat.jsonl", [{"messages": chat}] * 3)
    assert prepared(capsys, "chat.jsonl", "--tokenizer", "tok", "-o", "chat")[0] == 0
    tokens, mask = np.fromfile("chat.bin", np.uint16), np.fromfile("chat.mask", np.uint8)
    one = len(tokens) // 3
    decoded = made.decode(tokens[:one].tolist(), skip_special_tokens=False)
    assert decoded.startswith("<|im_start|>user\na word?<|im_end|>\n<|im_start|>assistant\ndocument<|im_end|>\n")
    said = made.decode(tokens[:one][mask[:one] == 1].tolist(), skip_special_tokens=False)
    assert said == "document<|im_end|>\nno word<|im_end|>\n"
    assert made.token_to_id("<|im_end|>") in tokens
    (here / "tok" / "tokenizer.json").write_text("{}")
    assert "tok/tokenizer.json is no tokenizer" in prepared(capsys, "chat.jsonl", "--tokenizer", "tok", "-o", "x")[2]


FIRST = "{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] }}\n{% endif %}" + CHATML


def chats(here, capsys, template, *all_messages):
    """The text of all, and what of it is to be predicted; or the complaint."""
    (here / "template").write_text(template)
    put_lines(here / "chats.jsonl", [{"messages": messages} for messages in all_messages])
    code, out, err = prepared(
        capsys, "chats.jsonl", "--tokenizer", "bytes", "--chat-template", "template", "--no-eos",
        "-o", "c", "--force")  # fmt: skip
    if code:
        return err
    tokens, mask = np.fromfile("c.bin", np.uint16).astype(np.uint8), np.fromfile("c.mask", np.uint8)
    return out, tokens.tobytes().decode(), tokens[mask == 1].tobytes().decode()


def test_an_assistant_that_speaks_first(here, capsys):
    """Templates that look at the first message cannot render the prompt before it."""
    pytest.importorskip("jinja2")
    chat = [{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "What?"},
            {"role": "assistant", "content": "That"}]  # fmt: skip
    out, text, said = chats(here, capsys, FIRST, chat, chat[1:])
    assert "1 messages of the assistant are not predicted" in out
    assert text.startswith("<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nWhat?")
    assert said == "That<|im_end|>\n" * 2
    out, _, said = chats(here, capsys, CHATML, chat)
    assert said == "Hello<|im_end|>\nThat<|im_end|>\n" and "not predicted" not in out
    wrong = "{% if messages|length == 1 %}{{ raise_exception('no answer') }}{% endif %}" + CHATML
    assert "the chat template: no answer" in chats(here, capsys, wrong, chat[1:])


def test_templates_are_rendered_as_by_transformers(here, capsys):
    pytest.importorskip("jinja2")
    chat = [{"role": "user", "content": "Wäs?"}, {"role": "assistant", "content": "This"}]
    json_of = "{{ m.content | tojson(ensure_ascii=%s, separators=(',', ':'), sort_keys=True) }}"
    for ascii, shown in (("False", '"Wäs?"'), ("True", '"W\\u00e4s?"')):
        told = chats(here, capsys, CHATML.replace("{{ m.content }}", json_of % ascii), chat)
        assert shown in told[1], told
    err = chats(here, capsys, CHATML.replace("m.content", "m.content + 1"), chat)
    assert "chats.jsonl, record 1: the chat template: " in err and err.count("\n") == 1


def test_a_tokenizer_of_sentencepiece(here, capsys):
    sentencepiece = pytest.importorskip("sentencepiece")
    put_lines(here / "a.jsonl", [{"prompt": "word ", "response": "document"}])
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_prefix="tokenizer", vocab_size=45, minloglevel=2)  # fmt: skip
    code, out, err = prepared(capsys, "a.jsonl", "--tokenizer", ".", "-o", "a")
    assert code == 0 and "vocab_size=45" in out, err
    processor = sentencepiece.SentencePieceProcessor(model_file="tokenizer.model")
    tokens, mask = np.fromfile("a.bin", np.uint16), np.fromfile("a.mask", np.uint8)
    assert tokens.tolist() == [*processor.encode("word document"), processor.eos_id()]
    assert processor.decode(tokens[mask == 1].tolist()).strip() == "document"


def test_sentencepiece_knows_special_and_added_tokens(here, capsys):
    """A chat's template writes them as text; a folder says of what was added to the model beside it."""
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("jinja2")
    (here / "words.txt").write_text("\n".join(TEXTS))
    sentencepiece.SentencePieceTrainer.train(
        input="words.txt", model_prefix="tokenizer", vocab_size=290, model_type="bpe", byte_fallback=True,
        minloglevel=2, character_coverage=1.0, remove_extra_whitespaces=False, hard_vocab_limit=False)  # fmt: skip
    plain = sentencepiece.SentencePieceProcessor(model_file="tokenizer.model")
    size = plain.vocab_size()
    start, end = size, size + 1
    (here / "added_tokens.json").write_text(json.dumps({"<|im_start|>": start, "<|im_end|>": end}))
    (here / "special_tokens_map.json").write_text(
        json.dumps({"eos_token": {"content": "<|im_end|>"}, "pad_token": None})
    )
    (here / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML, "added_tokens_decoder": {
        str(start): {"content": "<|im_start|>", "special": True},
        str(end): {"content": "<|im_end|>", "special": True, "rstrip": True}}}))  # fmt: skip
    made = tokenizer_of(str(here))
    assert (made.size, made.end, made.begin) == (size + 2, end, plain.bos_id())
    text = "<|im_start|>word 🙂 <|im_end|> \nword</s>"
    spans = made.encode([text, "word 3"])
    tokens = [token for token, _, _ in spans[0]]
    # Behind a special token no blank is put before a word, as at the beginning of a text.
    assert tokens[0] == start and tokens.count(end) == 1 and tokens[-1] == plain.eos_id()
    behind = [text[a:b] for _, a, b in spans[0] if b > a]
    assert "".join(behind) == text and "<|im_end|> \n" in behind
    assert [token for token, _, _ in spans[1]] == plain.encode("word 3") and made.prompt("word 3")[0] == plain.bos_id()
    assert made.decode(tokens) == "word 🙂 word"
    assert made.decode([*plain.encode("word"), size + 7]) == "word"  # of a vocabulary that was padded
    chat = [{"role": "user", "content": "word?"}, {"role": "assistant", "content": "document 5"}]
    put_lines(here / "chats.jsonl", [{"messages": chat}])
    code, _, err = prepared(capsys, "chats.jsonl", "--tokenizer", ".", "-o", "chats")
    assert code == 0, err
    told, mask = np.fromfile("chats.bin", np.uint16), np.fromfile("chats.mask", np.uint8)
    assert told.tolist().count(start) == 2 and told.tolist().count(end) == 2
    assert made.decode(told[mask == 1].tolist()) == "document 5"


def test_the_token_that_is_wrong_is_named(here, capsys):
    put_lines(here / "a.jsonl", [{"input_ids": [5, -3, 7]}])
    assert (
        "input_ids have -3: the tokenizer has 257" in prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "-o", "a")[2]
    )


@pytest.mark.parametrize("part", [1, 1 << 22])
def test_a_limit_counts_records_and_not_lines(here, capsys, monkeypatch, part):
    monkeypatch.setattr(command, "_TOKENS_OF_PART", part)
    monkeypatch.setattr(sources, "_JSON_BLOCK", 100)
    (here / "a.jsonl").write_text("".join('{"input_ids": [1]}\n' + "\n" * (i % 90) for i in range(200)))
    for limit in (1, 7, 150, 300):
        name = f"of{limit}"
        assert prepared(capsys, "a.jsonl", "--tokenizer", "bytes", "--limit", str(limit), "-o", name)[0] == 0
        assert np.fromfile(f"{name}.bin", np.uint16).size == min(limit, 200)
    (here / "b.jsonl").write_text("\n" * 150 + '{"input_ids": [1]}\n[]\n')
    assert "line 152: expected an object" in prepared(capsys, "b.jsonl", "--tokenizer", "bytes", "-o", "b")[2]
