"""Commands about the time of NKI kernels, as users type them."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

pytest.importorskip("ml_dtypes")

KERNEL = """import nki, nki.isa as nisa, nki.language as nl
import numpy as np
W = 512

@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[1] // W):
        t = nl.ndarray((128, W), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[:, i * W:(i + 1) * W])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[:, i * W:(i + 1) * W], src=t)
    return out

@nki.jit
def broken(x):
    return nl.no_such_name(x)

@nki.jit
def unwritten(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, W), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=out[:, 0:W], src=t)
    return out

def twice(x):
    return 2 * x

def almost(x):
    y = 2 * x
    y[3, 5] += 1
    return y

if __name__ == "__main__":
    doubled(np.ones((128, 2048), np.float32))
"""
ARG = ("--arg", "x=128x4096:f32")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("kernels") / "mine.py"
    path.write_text(KERNEL)
    return path


def nki(*words, status=0):
    ran = subprocess.run([sys.executable, "-m", "trellis.nki", *map(str, words)], capture_output=True, text=True)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_profile(file, tmp_path):
    page = tmp_path / "mine.html"
    text = nki("profile", f"{file}:doubled", *ARG, "-o", page)
    assert "doubled on trn2: " in text and "waited for" in text and "mine.py:10 nisa.dma_copy" in text
    assert "mine.py:11 nisa.tensor_scalar" in page.read_text()
    asked = json.loads(nki("profile", f"{file}:doubled", *ARG, "--chip", "trn1", "--json"))
    assert asked["chip"] == "trn1" and asked["low_us"] <= asked["us"] <= asked["high_us"]


def test_a_script_and_its_constants(file):
    wide = json.loads(nki("profile", file, "--json"))
    narrow = json.loads(nki("profile", file, "--set", "W=64", "--json"))
    assert (wide["instructions"], narrow["instructions"]) == (12, 96)
    assert narrow["us"] > wide["us"]
    assert "assigns no such constant" in nki("profile", file, "--set", "V=64", status=1)


CONSTANTS = """import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

ROWS, WIDTH = 128, 512
STEP: int = 512


@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    TILE = 512
    for at in range(0, WIDTH, min(STEP, TILE)):
        width = min(STEP, TILE)
        tile = nl.ndarray((ROWS, width), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, at:at + width])
        nisa.dma_copy(dst=out[:, at:at + width], src=tile)
    return out
"""


@pytest.mark.parametrize("name, value, instructions", [
    ("WIDTH", 1024, 4), ("STEP", 128, 8), ("TILE", 64, 16), ("width", 64, None),
])  # fmt: skip
def test_constants_in_a_row_with_a_type_and_of_a_function(tmp_path, name, value, instructions):
    path = tmp_path / "constants.py"
    path.write_text(CONSTANTS)
    words = (
        "profile",
        f"{path}:copied",
        "--arg",
        f"x=128x{value if name == 'WIDTH' else 512}:f32",
        "--set",
        f"{name}={value}",
    )
    if instructions is None:  # computed, not a constant
        assert "assigns no such constant" in nki(*words, status=1)
    else:
        assert json.loads(nki(*words, "--json"))["instructions"] == instructions


def test_what_if(file):
    fast, slow = (
        json.loads(nki("profile", file, "--what-if", f"dma.engine.rate={rate} GB/s", "--json")) for rate in (23, 2)
    )
    assert slow["us"] > 2 * fast["us"]
    assert "--what-if dma: expected FIGURE=VALUE" in nki("profile", file, "--what-if", "dma", status=1)


def test_compare(file, tmp_path):
    other = pathlib.Path(tmp_path) / "other.py"
    other.write_text(KERNEL.replace("W = 512", "W = 32"))
    text = nki("compare", f"{file}:doubled", f"{other}:doubled", *ARG)
    assert "the first is faster" in text and "descriptors of 2048 bytes, the second 128" in text
    same = json.loads(nki("compare", f"{file}:doubled", f"{file}:doubled", *ARG, "--json"))
    assert (same["faster"], same["ratio"], same["reasons"]) == ("draw", 1.0, [])


def test_the_server_says_what_compare_says(file, tmp_path):
    from trellis.nki.timing.serve import compare_kernels

    other = pathlib.Path(tmp_path) / "other.py"
    other.write_text(KERNEL.replace("W = 512", "W = 256"))
    said = compare_kernels(str(file), str(other), "doubled", {"x": "128x4096:f32"})
    asked = json.loads(nki("compare", f"{file}:doubled", f"{other}:doubled", *ARG, "--json"))
    assert {k: said[k] for k in ("faster", "ratio", "reasons")} == {k: asked[k] for k in ("faster", "ratio", "reasons")}
    assert compare_kernels(str(file), str(file), "broken", {"x": "128x4096:f32"})["errors"]


def test_run_takes_what_the_others_take(file):
    assert "12 instructions" in nki("run", file) and "24 instructions" in nki("run", f"{file}:doubled", *ARG)
    assert "has no tripled; expected one of doubled, broken" in nki("run", f"{file}:tripled", *ARG, status=1)


def test_check_against_a_budget(file, tmp_path):
    kept = tmp_path / "baseline.json"
    assert "has none for it" in nki("check", file, "--budget", kept, status=1)
    nki("check", file, "--budget", kept, "--write")
    assert "+0.0%" in nki("check", file, "--budget", kept).replace("-0.0%", "+0.0%")
    assert "too slow" in nki("check", file, "--budget", kept, "--what-if", "dma.engine.rate=2 GB/s", status=1)
    kept.write_text("{}")
    assert "expected a file that `check --write` made" in nki("check", file, "--budget", kept, status=1)


def test_answer(file):
    right = json.loads(nki("answer", f"{file}:doubled", *ARG, "--reference", ":twice"))
    assert (
        right["right"] is True and right["us"] > 0 and right["hints"] and not right["errors"] and not right["warnings"]
    )
    wrong = json.loads(nki("answer", f"{file}:doubled", *ARG, "--reference", ":almost", status=1))
    assert wrong["right"] is False and wrong["first_wrong"]["index"] == [3, 5] and wrong["first_wrong"]["wrong"] == 1
    failed = json.loads(nki("answer", f"{file}:broken", *ARG, status=1))
    assert failed["errors"][0]["line"] == 17 and "no_such_name" in failed["errors"][0]["error"]
    odd = json.loads(nki("answer", f"{file}:unwritten", *ARG))
    assert odd["us"] > 0 and any("mine.py:23: " in each and "written" in each for each in odd["warnings"]), odd[
        "warnings"
    ]


def test_serve_speaks_the_protocol(file):
    pytest.importorskip("mcp")
    import asyncio

    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def ask():
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "trellis.nki", "serve"], env=dict(os.environ)
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            said = await session.call_tool("time_kernel", {"source": KERNEL, "kernel": "doubled",
                                                           "arguments": {"x": "128x2048:f32"}, "reference": "twice"})
            return names, json.loads(said.content[0].text)

    names, given = asyncio.run(ask())
    assert names == {"time_kernel", "compare_kernels"}
    assert given["right"] is True and given["us"] > 0


SPEAKS = """import os
import sys

read, written = os.pipe()
if len(sys.argv) > 1:
    os.close(read)
    os.write(written, b"x")
for k in range(20000):
    print("line", k)
"""


@pytest.mark.parametrize(("words", "unbuffered"), ((["FILE"], ""), (["FILE"], "1"), (["run", "KERNEL"], ""),
                                                   (["profile", "KERNEL"], "1"), (["--help"], "")))  # fmt: skip
def test_output_that_nobody_reads_ends_the_program_without_a_word(file, tmp_path, words, unbuffered):
    (tmp_path / "speaks.py").write_text(SPEAKS)
    named = {"FILE": [str(tmp_path / "speaks.py")], "KERNEL": [f"{file}:doubled", "--arg", "x=128x512:f32"]}
    command = [sys.executable, "-m", "trellis.nki", *(w for word in words for w in named.get(word, [word]))]
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, "")


def test_a_pipe_of_the_script_itself_is_the_scripts(tmp_path):
    (tmp_path / "speaks.py").write_text(SPEAKS)
    ran = nki(tmp_path / "speaks.py", "its own", status=1)
    assert ran.splitlines()[-1].startswith("BrokenPipeError")


@pytest.mark.parametrize("grid", ("2x0", "2,2"))
def test_a_grid_is_of_one_program_or_more(file, grid):
    ran = nki("run", f"{file}:doubled", "--arg", "x=128x512:f32", f"--grid={grid}", status=1)
    assert ran == f"error: --grid {grid}: expected numbers of programs of 1 or more, as 2 or 4x2\n"
