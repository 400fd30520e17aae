"""NKI kernels that a job calls: one operation each, with the price that trellis.nki gives its call."""

import pathlib

import pytest

pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

from trellis.simulate.price import price  # noqa: E402
from trellis.simulate.ranks.coordinator import RankFailed  # noqa: E402
from trellis.simulate.price.rules import rule_of  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402
from trellis.simulate.record import read, write  # noqa: E402

JOB = pathlib.Path(__file__).parent / "jobs" / "kernel.py"


def recorded(*arguments):
    return record_job(["torchrun", str(JOB), *arguments], 4, 4, "neuron", 0, 1 << 34)


@pytest.fixture(scope="module")
def job():
    return recorded()


def calls(job):
    record = job.classes[0].record
    return [(record.operations[e[2]], e[4]) for e in record.events if e[0] == "op" and record.operations[e[2]].times]


def test_each_call_is_one_operation_forth_and_back(job):
    """The first block's gradient of its input is not asked for, but the kernel's own backward makes both."""
    told = calls(job)
    record = job.classes[0].record
    called = [e for e in record.events if e[0] == "op" and record.operations[e[2]].times]
    assert all("kernel.py:" in record.place(e).line for e in called)
    assert [record.place(e).module for e in called[:2]] == ["0", "1"]
    assert {o.name for o, _ in told} == {"nki.scaled"}
    assert [phase for _, phase in told] == ["forward", "forward", "backward", "backward"]
    assert {(o.inputs, o.outputs, o.read, o.written) for o, _ in told} == {
        (((256, 512), (1, 512)), ((256, 512),), 4 * (256 * 512 + 512), 4 * 256 * 512)
    }


def test_it_takes_as_long_as_alone(job):
    from trellis.nki import calls as nki_calls
    from trellis.nki.kernels.jit import decorator

    text = JOB.read_text()
    names = {"nki": None}
    exec("import trellis.nki as nki\nimport trellis.nki.isa as nisa\nimport trellis.nki.language as nl", names)
    body = text[text.index("def scaled(") : text.index("@nki.jit\ndef too_large")]
    # A kernel's source is read from its file, so that the function alone is made here.
    exec(compile(body, str(JOB), "exec"), names)
    alone = nki_calls.price_of(decorator(False)(names["scaled"]), nki_calls.Absent((256, 512), "float32"),
                               nki_calls.Absent((1, 512), "float32"), chip="trn2")  # fmt: skip
    operation = calls(job)[0][0]
    (ours,) = [t for t in operation.times if t.chip == "trn2"]
    assert ours.seconds == alone.seconds and 0 < ours.low < ours.seconds < ours.high

    out = price(job, "trn2.48xlarge")
    (row,) = [o for o in out.operators if o.name == "nki.scaled"]
    assert row.count == 4 and row.time == pytest.approx(4 * ours.seconds) and not row.default
    assert price(job, "trn1.32xlarge").time > 0


def test_a_record_keeps_it(job, tmp_path):
    write(job, tmp_path / "record")
    assert read(tmp_path / "record") == job


def test_a_gradient_that_is_not_registered_is_an_error():
    with pytest.raises(RankFailed, match="jobs::scaled has no gradient: expected its register_autograd"):
        recorded("alone")


def test_a_kernel_that_no_chip_runs_is_an_error_at_its_line():
    with pytest.raises(RankFailed, match=r"kernel.py:\d+: the kernel too_large runs on no chip: .*256"):
        recorded("chip")


TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def twice(x, out, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(out + at, 2 * tl.load(x + at))

weight = torch.nn.Parameter(torch.rand(1024, 1024, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    out = torch.empty(1024, 1024, device="cuda")
    twice[(1024,)](weight.detach(), out, 1024)
    (weight * out).sum().backward()
    optimizer.step()
"""


def test_a_kernel_of_triton_moves_its_tensors(tmp_path):
    pytest.importorskip("triton")
    (tmp_path / "job.py").write_text(TRITON)
    job = record_job(["python", str(tmp_path / "job.py")], 1, 1, "any", 0, 1 << 34)
    record = job.classes[0].record
    (used,) = [o for o in record.operations if o.name == "triton.twice"]
    assert used.read == 2 * 1024 * 1024 * 4 and rule_of(used).default
    assert any("the triton kernel twice" in told for told in job.assumptions)
