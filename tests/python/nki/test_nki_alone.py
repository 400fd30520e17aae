"""What runs without the package's native part, and without torch_xla."""

import pathlib
import subprocess
import sys

import pytest

nki = pytest.importorskip("trellis.nki", reason="ml_dtypes is not installed")
EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/nki"

WITHOUT = """import sys
sys.modules["trellis._native"] = None
from trellis.nki.command.run import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_kernel_is_computed_without_the_native_part_which_only_times_need():
    words = ["run", f"{EXAMPLES}/matmul.py:kept", "--arg", "left=128x128:bf16", "--arg", "right=128x512:bf16"]
    ran = subprocess.run([sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=True)
    assert "result 0: bf16[128, 512]" in ran.stdout and "no time: " in ran.stdout


def test_scripts_that_send_tensors_to_a_device_by_torch_xla_use_this_machine():
    torch = pytest.importorskip("torch")
    if nki.imports.installed("torch_xla"):
        pytest.skip("torch_xla is installed")
    with nki.as_nki(shadow=True):
        import nki.isa as nisa
        import nki.language as nl
        from torch_xla.core import xla_model as xm

        @nki.jit
        def twice(x):
            tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=tile, src=x)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out, src=tile)
            return out

        x = torch.ones((128, 64), dtype=torch.bfloat16, device=xm.xla_device())
        assert twice(x).dtype == torch.bfloat16 and bool((twice(x) == 2 * x).all())
        xm.mark_step()
        with pytest.raises(
            ModuleNotFoundError, match="torch_xla.core.xla_model.rendezvous: torch_xla is not installed"
        ):
            xm.rendezvous("here")


def test_trellis_nki_is_the_same_command():
    words = [
        "nki",
        "--no-compute",
        "run",
        f"{EXAMPLES}/matmul.py:kept",
        "--arg",
        "left=128x128:bf16",
        "--arg",
        "right=128x512:bf16",
    ]
    code = (
        "import sys, types; sys.modules['trellis._where'] = types.SimpleNamespace(PROGRAM='false'); "
        "from trellis.__main__ import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert "kept on trn2: " in ran.stdout


FILE = """import nki
import not_there.at_all as absent
from neuronxcc.nki._private_kernels import attention
try:
    import not_there_either
    HAS = True
except ImportError:
    HAS = False


def annotated(x: absent.Thing | None, y: None | absent.Thing = None) -> absent.Float[absent.Array, "rows columns"]:
    return x


def use():
    return absent.thing(1)


def walk():
    return list(absent.things)
"""


def test_what_a_kernels_file_imports_may_be_absent_until_it_is_used(tmp_path):
    (tmp_path / "kernels_of_someone.py").write_text(FILE)
    code = ("import sys, trellis.nki as nki; sys.path.insert(0, sys.argv[1])\n"
            "with nki.as_nki():\n    import kernels_of_someone as file\n    print(file.HAS, file.annotated(3))\n"
            "try:\n    file.walk()\nexcept TypeError as e:\n    print(e)\nfile.use()")  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert ran.stdout == "False 3\n'AbsentName' object is not iterable\n"
    assert "not_there.at_all.thing: not_there is not installed; expected it for what this line does" in ran.stderr
