"""As what kind and shape an operator of torch is priced."""

import pytest

pytest.importorskip("numpy")

from trellis import sim  # noqa: E402
from trellis.simulate.price.merging import merged_times  # noqa: E402
from trellis.simulate.price.rates import Rates  # noqa: E402
from trellis.simulate.price.rules import _RULES, Rule, rule_of  # noqa: E402
from trellis.simulate.record import Operation, Place, RankRecord  # noqa: E402


def test_a_norm_of_many_tensors_is_priced_by_what_it_reads():
    norms = Operation("aten._foreach_norm.Scalar", ((512, 1024),) * 8, ((),) * 8, "float32", 0, 8 << 21, 32)
    shape = rule_of(norms).shape
    assert shape["rows"] * shape["columns"] == 8 << 19 and shape["inputs"] == 1


def test_of_the_gradient_of_a_loss_nothing_is_read():
    loss = Operation("aten.nll_loss_backward.default", ((), (64, 2048), (64,)), ((64, 2048),), "float32", 0, 1 << 19,
                     1 << 19)  # fmt: skip
    shape = rule_of(loss).shape
    assert (shape["rows"], shape["columns"], shape["inputs"], shape["outputs"]) == (64, 2048, 0, 1)


def test_operators_that_have_flops_are_those_that_are_priced_by_them():
    flops = pytest.importorskip("trellis.simulate.world.flops")
    priced = {name for name, (kind, _) in _RULES.items() if kind in ("product", "attention", "attention_gradient")}
    assert priced == {name.partition(".")[2] for name in flops._RULES}


@pytest.mark.parametrize("name", ["_scaled_mm", "_scaled_grouped_mm", "_int_mm"])
def test_products_of_bytes_take_what_their_engine_takes(name):
    """Their results are of another type, which is what a record tells."""
    rates = Rates(sim.Machine("trn2.48xlarge"), [])
    a, b, out = (8192, 4096), (4096, 14336), (8192, 14336)
    if "grouped" in name:
        b = (8, *b)
    scales = () if name == "_int_mm" else ((), ())
    of_bytes = Operation(f"aten.{name}.default", (a, b, *scales), (out,), "bfloat16", 2 * 8192 * 4096 * 14336,
                         8192 * 4096 + 4096 * 14336, 2 * 8192 * 14336)  # fmt: skip
    wide = "aten._grouped_mm.default" if "grouped" in name else "aten.mm.default"
    plain = Operation(wide, (a, b), (out,), "bfloat16", of_bytes.flops, 2 * of_bytes.read, of_bytes.written)
    assert rates.operation(plain) / 2 <= rates.operation(of_bytes) < 0.6 * rates.operation(plain)


@pytest.mark.parametrize(
    ("words", "width", "tokens", "kind", "size"),
    [(50304, 768, 12288, "float32", 4), (128256, 4096, 8192, "bfloat16", 2)],
)
def test_the_gradient_of_an_embedding_fills_its_table(words, width, tokens, kind, size):
    """Rows are added to zeros, which take longer than the rows; nothing of it merges with its neighbours."""
    rates = Rates(sim.Machine("trn2.48xlarge"), [])
    out, read = ((words, width),), tokens * (width * size + 8)
    gradient = Operation("aten.embedding_dense_backward.default", ((tokens, width), (tokens,)), out, kind, 0, read,
                         words * width * size)  # fmt: skip
    zeros = Operation("aten.zeros.default", (), out, kind, 0, 0, words * width * size)
    shape = {"rows": tokens, "columns": width, "type": rule_of(gradient).shape["type"]}
    added = rates.time(Rule("", "embedding_gradient", shape))
    assert max(added, rates.operation(zeros)) < rates.operation(gradient) <= added + rates.operation(zeros)
    record = RankRecord(0, [("op", 0, 0, 0, "backward")] * 3, [gradient], [Place("", "")], ["compute"], compiled=[0])
    assert merged_times(record, rates) == {}


@pytest.mark.parametrize("name", ["index_add", "scatter_add"])
def test_what_is_added_in_place_counts(name):
    """Eight rows for each, as experts' results are put together; one of many for each, as of a row's chosen word."""
    sizes = "float32", 0, 1 << 20, 1 << 20
    together = Operation(f"aten.{name}_.default", ((64, 512), (512,), (512, 512)), ((64, 512),), *sizes)
    chosen = Operation(f"aten.{name}_.default", ((64, 4096), (64, 1), (64, 1)), ((64, 4096),), *sizes)
    told = [rule_of(o).shape for o in (together, chosen)]
    assert [(shape["rows"], shape["columns"]) for shape in told] == [(512, 512), (64, 1)]
    copied = Operation(f"aten.{name}.default", together.inputs, together.outputs, *sizes)
    assert rule_of(copied).shape["rows"] == 64
