"""How the process group is compiled, and what its name in the cache depends on."""

import pathlib
import re
import sys

import pytest

pytest.importorskip("torch")

from trellis._where import INCLUDE  # noqa: E402
from trellis.torch import compiling  # noqa: E402


def test_the_name_depends_on_every_header_that_is_included():
    known = set(compiling._headers())
    for source in compiling._sources():
        for name in re.findall(r'^#include "((?!trellis/).*)"', source.read_text(), re.M):
            assert pathlib.Path(INCLUDE) / name in known, f"{source.name} includes {name}"


def test_a_compiler_may_have_words(tmp_path, monkeypatch):
    script = tmp_path / "writes.py"
    script.write_text("import sys; open(sys.argv[sys.argv.index('-o') + 1], 'w').write(sys.argv[1])")
    monkeypatch.setenv("CXX", f"{sys.executable} {script} first")
    compiling.compile_for(compiling.installed(), tmp_path / "made.so", [])
    assert (tmp_path / "made.so").read_text() == "first"


def test_a_compiler_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    with pytest.raises(ImportError, match=r"CXX=.*/none: .*No such file"):
        compiling.compile_for(compiling.installed(), tmp_path / "made.so", [])
