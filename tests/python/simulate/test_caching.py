"""The model of torch.cuda's caching allocator does what PyTorch documents of it."""

import random

import pytest

pytest.importorskip("torch")

from trellis.simulate.world.caching import MIB, Caching, settings  # noqa: E402

EXPANDABLE = {"expandable_segments": "True"}


@pytest.mark.parametrize(("size", "allocated", "reserved"), [
    (1, 512, 2 * MIB), (513, 1024, 2 * MIB), (MIB, MIB, 2 * MIB), (MIB + 1, MIB + 512, 20 * MIB),
    (10 * MIB - 512, 10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB, 10 * MIB), (21 * MIB + 1, 22 * MIB, 22 * MIB),
])  # fmt: skip
def test_sizes_are_rounded_and_segments_have_their_sizes(size, allocated, reserved):
    caching = Caching({})
    caching.allocate(size)
    assert (caching.allocated, caching.reserved) == (allocated, reserved)


def test_what_is_freed_serves_again_and_is_still_reserved():
    caching = Caching({})
    block = caching.allocate(30 * MIB)
    caching.free(block)
    assert (caching.allocated, caching.reserved, caching.most_allocated) == (0, 30 * MIB, 30 * MIB)
    caching.allocate(12 * MIB)
    caching.allocate(18 * MIB)
    assert caching.reserved == 30 * MIB


def test_the_smallest_block_that_is_large_enough_serves():
    caching = Caching({})
    large, small = caching.allocate(64 * MIB), caching.allocate(32 * MIB)
    caching.free(large)
    caching.free(small)
    caching.allocate(30 * MIB)
    caching.allocate(64 * MIB)
    assert caching.reserved == 96 * MIB


def test_a_rest_of_at_most_a_mebibyte_stays_with_a_large_block():
    caching = Caching({})
    caching.free(caching.allocate(32 * MIB))
    caching.allocate(31 * MIB)
    assert caching.allocated == 32 * MIB
    caching = Caching({})
    caching.free(caching.allocate(32 * MIB))
    caching.allocate(31 * MIB - 512)
    assert caching.allocated == 31 * MIB - 512


def test_free_neighbours_become_one_and_blocks_in_use_part_them():
    """Three parts of a segment: with the middle one in use, the ends do not make a whole."""
    caching = Caching({})
    caching.free(caching.allocate(60 * MIB))
    first, middle, last = (caching.allocate(20 * MIB) for _ in range(3))
    caching.free(first)
    caching.free(last)
    caching.allocate(40 * MIB)
    assert caching.reserved == 100 * MIB
    caching.free(middle)
    caching.allocate(60 * MIB)
    assert caching.reserved == 100 * MIB


@pytest.mark.parametrize("told", [{}, EXPANDABLE])
def test_streams_and_small_sizes_have_blocks_of_their_own(told):
    caching = Caching(told)
    caching.free(caching.allocate(40 * MIB, 0))
    caching.allocate(40 * MIB, 1)
    caching.allocate(100, 1)
    assert caching.reserved == 82 * MIB


def test_only_segments_of_which_nothing_is_used_are_given_back():
    caching = Caching({})
    kept, free = caching.allocate(15 * MIB), caching.allocate(30 * MIB)
    caching.free(free)
    caching.free(caching.allocate(100))
    caching.empty()
    assert caching.reserved == 16 * MIB == caching.allocated  # the rest, of a mebibyte, is the block's
    caching.free(kept)
    caching.empty()
    assert caching.reserved == 0


def test_blocks_above_the_limit_are_not_split():
    caching = Caching({"max_split_size_mb": "64"})
    caching.free(caching.allocate(100 * MIB))
    caching.allocate(30 * MIB)  # less than the limit: none of those above it
    assert caching.reserved == 130 * MIB
    caching.allocate(90 * MIB)  # within 20 MiB of it: the whole block
    assert (caching.reserved, caching.allocated) == (130 * MIB, 130 * MIB)


def test_an_expandable_segment_grows_at_its_end():
    """With segments of their own, 40 MiB that are free do not serve 60; here 20 are added to them."""
    plain, grown = Caching({}), Caching(EXPANDABLE)
    for caching in (plain, grown):
        caching.free(caching.allocate(40 * MIB))
        caching.allocate(60 * MIB)
    assert (plain.reserved, grown.reserved) == (100 * MIB, 60 * MIB)


def test_the_end_of_an_expandable_segment_serves_last():
    caching = Caching(EXPANDABLE)
    first, second, third = (caching.allocate(size * MIB) for size in (40, 20, 20))
    caching.free(first)
    caching.free(third)
    caching.allocate(20 * MIB)  # from the first block, not the end, which is smaller
    caching.allocate(40 * MIB)  # the end, grown
    assert caching.reserved == 100 * MIB
    caching.free(second)


def test_pages_that_are_given_back_are_mapped_again():
    caching = Caching(EXPANDABLE)
    first, second = caching.allocate(60 * MIB), caching.allocate(20 * MIB)
    caching.free(first)
    caching.empty()
    assert caching.reserved == 20 * MIB
    caching.allocate(50 * MIB)
    assert caching.reserved == 80 * MIB
    caching.free(second)


@pytest.mark.parametrize("told", [{}, EXPANDABLE, {"max_split_size_mb": "64"}])
def test_nothing_is_lost_whatever_the_order(told):
    caching, draw = Caching(told), random.Random(1)
    live = []
    for turn in range(4000):
        if not live or (draw.random() < 0.5 and len(live) < 100):
            live.append(caching.allocate(int(2 ** draw.uniform(3, 28)), draw.randrange(2)))
        else:
            caching.free(live.pop(draw.randrange(len(live))))
        if turn % 301 == 0:
            caching.empty()
        assert caching.allocated == sum(block.size for block in live) <= caching.reserved
    for block in live:
        caching.free(block)
    caching.empty()
    assert (caching.allocated, caching.reserved) == (0, 0)


def test_settings_are_those_of_the_programs_environment(monkeypatch):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True, max_split_size_mb:128")
    assert settings() == {"expandable_segments": "True", "max_split_size_mb": "128"}
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "garbage_collection_threshold:0.8")
    assert settings() == {"garbage_collection_threshold": "0.8"} and not Caching().expandable
