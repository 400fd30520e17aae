"""What scripts for a GPU say of it goes here as it goes there."""

import pathlib

import pytest

pytest.importorskip("torch")

from trellis.simulate.ranks.coordinator import RankFailed  # noqa: E402
from trellis.simulate.ranks.record_job import record_job  # noqa: E402

NAMES = pathlib.Path(__file__).parent / "jobs" / "names.py"
WAYS = NAMES.read_text().partition("WAYS = (")[2].partition(")")[0].replace(",", " ").split()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """(how each way went, the record or the error)"""
    file = tmp_path_factory.mktemp("names") / "told"
    try:
        job = record_job(["torchrun", str(NAMES), str(file)], 2, 2, "any", 0, 1 << 34)
    except RankFailed as error:
        job = error
    return dict(line.split(": ", 1) for line in file.read_text().splitlines()), job


@pytest.mark.parametrize("way", WAYS)
def test_names_of_an_accelerator(told, way):
    assert told[0].get(way) == "done"
