"""Times of NKI kernels: order of versions, rotation, sizes of transfers, the report."""

import html
import json

import pytest

np_types = pytest.importorskip("ml_dtypes")
from trellis import _native  # noqa: E402
from trellis.nki import timing  # noqa: E402
from trellis.nki.timing import flatten, model  # noqa: E402
from trellis.nki.trace import Trace, View  # noqa: E402

P, COLUMNS = 128, 2048


def doubled(turns: int, columns: int = COLUMNS, anew: bool = True, dialect: str = "0.7",
            address: tuple[int, int] | None = None) -> Trace:  # fmt: skip
    """y = 2 x by pieces of as many columns; each turn declares its tiles anew, or all share them."""
    t = Trace(
        "doubled",
        dialect=dialect,
        lines=[("", 0, ""), ("k.py", 1, "load"), ("k.py", 2, "double"), ("k.py", 3, "store")],
    )
    pitch = turns * columns
    size = P * pitch * 4
    x = t.add_buffer("x", "hbm", "f32", (P, pitch), rows=1, row_bytes=size, role="input")
    y = t.add_buffer("y", "hbm", "f32", (P, pitch), rows=1, row_bytes=size, role="output")
    tile = 0
    for turn in range(turns):
        if anew or turn == 0:
            tile = t.add_buffer("tile", "sbuf", "f32", (P, columns), rows=P, row_bytes=4 * columns, site=1,
                                address=address)  # fmt: skip
        on_chip = t.add_view(View(tile, 0, P, 0, ((columns, 1),), 0, "f32"))
        source = t.add_view(View(x, 0, P, turn * columns, ((columns, 1),), pitch, "f32"))
        target = t.add_view(View(y, 0, P, turn * columns, ((columns, 1),), pitch, "f32"))
        queues = ("sync", "scalar", "gpsimd")
        t.add("dma_copy", (on_chip,), (source,), allowed=queues, name="dma_copy", line=1)
        t.add("tensor_scalar", (on_chip,), (on_chip,), allowed=("vector", "scalar", "gpsimd"), name="tensor_scalar",
              attributes={"op": "multiply", "value": 2.0}, line=2)
        t.add("dma_copy", (target,), (on_chip,), allowed=queues, name="dma_copy", line=3)
    return t


def test_time_has_an_interval_and_says_what_it_waited_for():
    t = timing.time_of(doubled(16))
    assert 0 < t.low <= t.seconds <= t.high
    bytes_moved = 2 * 16 * P * COLUMNS * 4
    assert t.dma["bytes"] == bytes_moved
    assert t.seconds > bytes_moved / (16 * 23e9)  # no faster than the engines move
    assert len(t.waits) == 3 and "k.py" in t.waits[0]
    assert {line.text for line in t.hot_lines} == {"k.py:1 load", "k.py:2 double", "k.py:3 store"}
    assert sum(line.instructions for line in t.hot_lines) == 48
    assert json.loads(json.dumps(t.json()))["us"] == pytest.approx(t.seconds * 1e6, abs=1e-3)
    drawn = t._repr_html_()  # in a notebook: the lines, and the timeline
    assert "k.py:1 load" in drawn and html.escape(t._html()) in drawn


def test_a_tile_that_cannot_rotate_costs_time():
    placed = timing.time_of(doubled(16, anew=False, address=(0, 0)))
    assert placed.low > 1.5 * timing.time_of(doubled(16)).seconds
    assert timing.time_of(doubled(16, anew=False)).seconds < placed.low


def test_small_transfers_are_slow():
    wide, narrow = timing.time_of(doubled(16, 2048)), timing.time_of(doubled(256, 128))
    assert narrow.low > 1.5 * wide.high
    assert any("descriptor" in hint for hint in narrow.hints)


def test_order_of_the_text_is_kept_where_the_kernel_says_so():
    trace = doubled(8)
    trace.no_reorder = [(0, len(trace))]
    kept = flatten.draft_of(trace).assemble(_native.CoreChip("trn2", [], 0), 64, False, 4, False, False, False)
    assert kept.order.tolist() == list(range(len(trace)))
    free = flatten.draft_of(doubled(8)).assemble(_native.CoreChip("trn2", [], 0), 64, False, 4, False, False, False)
    assert free.order.tolist() != kept.order.tolist()
    assert [s.window for s in model.scenarios(trace)] == [1, 1, 1]


def test_static_descriptors_cost_no_generation():
    dynamic, static = doubled(256, 128), doubled(256, 128, dialect="beta1")
    assert timing.time_of(static).seconds < 0.7 * timing.time_of(dynamic).seconds


def test_another_chip_and_another_figure():
    trace = doubled(16)
    assert timing.time_of(trace, "trn1").seconds > timing.time_of(trace, "trn2").seconds
    slower = timing.time_of(trace, "trn2", (("dma.engine.rate", "10 GB/s"),))
    assert slower.seconds > 1.5 * timing.time_of(trace, "trn2").seconds


def test_tiles_that_do_not_fit_are_named():
    trace = doubled(1, 60_000)
    with pytest.raises(ValueError, match="SBUF is full: tile needs 240000 bytes a partition"):
        timing.time_of(trace)


def test_a_word_that_the_core_does_not_know():
    trace = doubled(1)
    trace.attributes[1] = {"op": "times"}
    with pytest.raises(ValueError, match="op='times': expected one of add, subtract"):
        timing.time_of(trace)


def test_pages(tmp_path):
    t = timing.time_of(doubled(4))
    t.page(str(tmp_path / "k.html"))
    page = (tmp_path / "k.html").read_text()
    assert "tensor_scalar: k.py:2 double" in page and "What made this page" in page
    t.page(str(tmp_path / "k.pftrace"))
    assert (tmp_path / "k.pftrace").stat().st_size > 1000
    with pytest.raises(ValueError, match="expected a name that ends in"):
        t.page(str(tmp_path / "k.pdf"))


def test_a_hundred_thousand_instructions_take_seconds():
    import time

    trace = doubled(33_334, 64)
    begun = time.process_time()
    t = timing.time_of(trace)
    assert t.instructions == 100_002
    assert time.process_time() - begun < 30
