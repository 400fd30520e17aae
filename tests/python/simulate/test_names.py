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


def test_statistics_of_all_ranks_are_exchanged(told):
    """SyncBatchNorm gathers means, deviations and a count, and adds up two gradients of its statistics; the hook halves
    the bytes of the gradients."""
    (one,) = told[1].classes
    exchanged = [e[3:4] + e[5:7] for e in one.record.events if e[0] == "collective"]
    assert ("all_gather", 2 * (2 * 8 + 1) * 4, "float32") in exchanged
    assert ("all_reduce", 2 * 8 * 4, "float32") in exchanged
    assert ("all_reduce", (3 * 8 * 9 + 8 + 8 + 8) * 2, "bfloat16") in exchanged
