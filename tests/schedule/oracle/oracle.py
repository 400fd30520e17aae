"""Says whether a schedule's text is right, slowly and from the definitions alone: no code in common with the verifier.

As a program: makes good schedules, damages them at random, and holds `trellis schedule verify` against what it finds.

    tests/schedule/oracle/oracle.py build/release/trellis 100000 [--seed N]

A schedule on which the two disagree is printed, and the exit status is 1.
"""
import argparse
import collections
import sys

from text import Wrong

BY_BLOCK = {"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all", "all_to_all_v", "all_gather_v",
            "reduce_scatter_v"}
UNEVEN = {"all_to_all_v", "all_gather_v", "reduce_scatter_v"}
ROOTED = {"broadcast", "reduce", "gather", "scatter"}
SUMS = {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v"}
COLLECTIVES = sorted(BY_BLOCK | ROOTED | {"all_reduce", "permute", "send_recv", "barrier"})
Event = collections.namedtuple("Event", "rank step")


class Meaning:
    """What the collective says of each rank's chunks."""

    def __init__(self, s):
        self.s = s
        self.blocks = s.ranks if s.collective in BY_BLOCK else 1

    def check(self):
        s = self.s
        ranks = range(s.ranks)
        if s.pieces < 1 or s.ranks < 1 or len(s.programs) != s.ranks:
            raise Wrong("nothing to do, or nobody to do it")
        if s.root not in (ranks if s.collective in ROOTED | {"send_recv"} else [0]):
            raise Wrong("root")
        if s.peer not in (ranks if s.collective == "send_recv" else [0]):
            raise Wrong("peer")
        if s.pairs and s.collective != "permute":
            raise Wrong("pairs")
        for side in zip(*s.pairs):
            if len(set(side)) != len(side) or not set(side) <= set(ranks):
                raise Wrong("pairs")
        if s.even and s.collective in UNEVEN or s.in_place and s.collective == "all_to_all_v":
            raise Wrong("a task that no schedule solves")
        if not 1 <= s.channels <= 256:
            raise Wrong("channels")

    def chunks(self, rank, buffer):
        s, whole = self.s, self.blocks * self.s.pieces
        if buffer == "tmp":
            return s.programs[rank].scratch
        if buffer == "in":
            if s.collective in ("all_gather", "all_gather_v", "gather"):
                return s.pieces
            alone = {"broadcast": s.root, "scatter": s.root, "send_recv": s.root}
            has = rank in [a for a, _ in s.pairs] if s.collective == "permute" else rank == alone.get(s.collective, rank)
        else:
            if s.collective in ("reduce_scatter", "reduce_scatter_v", "scatter"):
                return s.pieces
            alone = {"reduce": s.root, "gather": s.root, "send_recv": s.peer}
            has = rank in [b for _, b in s.pairs] if s.collective == "permute" else rank == alone.get(s.collective, rank)
        return whole if has else 0

    def cell(self, rank, buffer, chunk):
        """In place, a chunk that is in both buffers is the output's."""
        if buffer == "in" and self.s.in_place and self.chunks(rank, "out") and self.chunks(rank, "in"):
            more = self.chunks(rank, "in") - self.chunks(rank, "out")
            own = rank * self.s.pieces
            at = chunk + own if more < 0 else chunk - own if more > 0 else chunk
            if 0 <= at < self.chunks(rank, "out"):
                return ("out", at)
        return (buffer, chunk)

    def size(self, rank, buffer, chunk):
        """A name for how long the chunk is; equal names are equal lengths, whatever the caller's counts."""
        s = self.s
        if s.even:
            return "all alike"
        if buffer == "tmp":
            buffer, chunk = "data", s.programs[rank].rooms[chunk]
        block, piece = divmod(chunk, s.pieces)
        if s.collective == "all_to_all_v":
            return (rank, block, piece) if buffer == "in" else (block, rank, piece)
        if s.collective in UNEVEN:
            small = "in" if s.collective == "all_gather_v" else "out"
            return (rank if buffer == small else block, piece)
        return piece if s.collective in BY_BLOCK else chunk

    def wanted(self, rank, chunk):
        """{(rank, input chunk)} that must be there, each once."""
        s = self.s
        block, piece = divmod(chunk, s.pieces)
        if s.collective in SUMS | {"barrier"}:
            at = rank * s.pieces + chunk if s.collective.startswith("reduce_scatter") else chunk
            return {(r, at) for r in range(s.ranks)}
        if s.collective in ("all_gather", "all_gather_v", "gather"):
            return {(block, piece)}
        if s.collective in ("all_to_all", "all_to_all_v"):
            return {(block, rank * s.pieces + piece)}
        if s.collective == "scatter":
            return {(s.root, rank * s.pieces + chunk)}
        if s.collective == "permute":
            return {(next(a for a, b in s.pairs if b == rank), chunk)}
        return {(s.root, chunk)}


def cells_of(meaning, rank, s):
    return [meaning.cell(rank, s.buffer, c) for c in range(s.first, s.first + s.count)]


def check_places(s, meaning):
    for rank, program in enumerate(s.programs):
        rooms = program.rooms
        if rooms is None and program.scratch and not s.even or rooms is not None and len(rooms) != program.scratch:
            raise Wrong(f"rank {rank}: nobody knows how large its scratch is")
        if any(not 0 <= c < meaning.blocks * s.pieces for c in rooms or []):
            raise Wrong(f"rank {rank}: scratch like no chunk")
        for i, step in enumerate(program.steps):
            check_step(s, meaning, rank, i, step)


def check_step(s, meaning, rank, i, step):
    def fail(why):
        raise Wrong(f"rank {rank} step {i}: {why}")

    if any(not 0 <= before < i for before in step.after):
        fail("waits for no earlier step")
    if not 0 <= step.channel < s.channels:
        fail("channel")
    if step.op == "reduce" and len(step.sources) < 2 or step.op == "copy" and len(step.targets) > 2:
        fail("too few or too many places")
    for x in step.sources + step.targets:
        if x.buffer not in ("in", "out", "tmp") or x.count < 1 or x.first < 0:
            fail("no place")
        if x.first + x.count > meaning.chunks(rank, x.buffer):
            fail("beyond the buffer")
    if any(x.buffer == "in" for x in step.targets):
        fail("writes to the input")
    places = step.sources + step.targets
    for x in places:
        if x.count != places[0].count:
            fail("joins runs of different length")
        for k in range(x.count):
            if meaning.size(rank, x.buffer, x.first + k) != meaning.size(rank, places[0].buffer, places[0].first + k):
                fail("joins chunks of different size")
    for n, target in enumerate(step.targets):
        mine = cells_of(meaning, rank, target)
        for other in step.sources:
            theirs = cells_of(meaning, rank, other)
            if mine != theirs and set(mine) & set(theirs):
                fail("half overlaps itself")
        if any(set(mine) & set(cells_of(meaning, rank, other)) for other in step.targets[:n]):
            fail("writes twice to one place")


def joined(s, meaning):
    """{send: its receives}, after checking that each message has two ends that fit."""
    sent, received = {}, {}
    for rank, program in enumerate(s.programs):
        for i, step in enumerate(program.steps):
            for peer, tag in step.ends:
                if not 0 <= peer < s.ranks or peer == rank:
                    raise Wrong(f"rank {rank} step {i}: no such peer")
                sends = step.op == "send"
                name = (rank, peer, step.channel, tag) if sends else (peer, rank, step.channel, tag)
                where = sent if sends else received
                if name in where:
                    raise Wrong(f"rank {rank} step {i}: {name} is there twice")
                where[name] = Event(rank, i)
    if set(sent) != set(received):
        raise Wrong(f"a message with one end: {sorted(set(sent) ^ set(received))[0]}")
    for a, b, channel, tag in sent:
        if tag < 0 or tag > 0 and (a, b, channel, tag - 1) not in sent:
            raise Wrong(f"numbers of messages have a gap before {tag}")
    receives = collections.defaultdict(list)
    for name, send in sent.items():
        receive = received[name]
        receives[send].append(receive)
        source = s.programs[send.rank].steps[send.step].sources[0]
        target = s.programs[receive.rank].steps[receive.step].targets[0]
        if source.count != target.count:
            raise Wrong("ends of different length")
        for k in range(source.count):
            if meaning.size(send.rank, source.buffer, source.first + k) != meaning.size(receive.rank, target.buffer,
                                                                                      target.first + k):
                raise Wrong("ends of different size")
    return receives


def run_order(s, receives):
    """One order of all steps in which each message moves once all its ends have begun."""
    partners = {}
    for send, ends in receives.items():
        for one in [send, *ends]:
            partners[one] = [send, *ends]
    done, order = set(), []
    everything = [Event(rank, i) for rank, program in enumerate(s.programs) for i in range(len(program.steps))]
    left = everything
    while left:
        def begun(e):
            return all(Event(e.rank, b) in done for b in s.programs[e.rank].steps[e.step].after)

        now = []
        for e in left:
            group = partners.get(e, [e])
            if e == group[0] and all(begun(other) for other in group):
                now += group
        if not now:
            raise Wrong(f"{left[0]} never starts")
        order += now
        done.update(now)
        left = [e for e in left if e not in done]
    return order


def check_races(s, meaning, receives, order):
    """A step ends before another starts if waits say so, or if it must have been sent to have arrived."""
    number = {e: n for n, e in enumerate(order)}
    begins, ends = [0] * len(order), [0] * len(order)  # bits: the steps that have ended by then
    senders = collections.defaultdict(list)
    for send, all_ends in receives.items():
        for receive in all_ends:
            senders[receive].append(send)
    for e in order:
        n = number[e]
        for b in s.programs[e.rank].steps[e.step].after:
            before = number[Event(e.rank, b)]
            begins[n] |= ends[before] | 1 << before
        ends[n] |= begins[n]
        for send in senders[e]:
            ends[n] |= begins[number[send]]
    for rank, program in enumerate(s.programs):
        users = collections.defaultdict(list)
        for i, step in enumerate(program.steps):
            read = {c for x in step.sources for c in cells_of(meaning, rank, x)}
            written = {c for x in step.targets for c in cells_of(meaning, rank, x)}
            for cell in read | written:
                users[cell].append((i, cell in written))
        for cell, steps in users.items():
            for at, (a, writes) in enumerate(steps):
                for b, also in steps[:at]:
                    x, y = number[Event(rank, a)], number[Event(rank, b)]
                    if (writes or also) and not begins[x] >> y & 1 and not begins[y] >> x & 1:
                        raise Wrong(f"rank {rank} steps {b} and {a} race on {cell}")


def check_result(s, meaning, receives, order):
    memory = [{} for _ in s.programs]
    for rank in range(s.ranks):
        for c in range(meaning.chunks(rank, "in")):
            memory[rank][meaning.cell(rank, "in", c)] = collections.Counter({(rank, c): 1})
    sender = {receive: send for send, ends in receives.items() for receive in ends}

    def values(e, x):
        return [memory[e.rank].get(cell) for cell in cells_of(meaning, e.rank, x)]

    def put(e, x, new):
        for cell, value in zip(cells_of(meaning, e.rank, x), new):
            memory[e.rank][cell] = value

    def total(lists):
        return [None if None in row else sum(row, collections.Counter()) for row in zip(*lists)]

    for e in order:
        step = s.programs[e.rank].steps[e.step]
        if step.op == "send":
            continue
        lists = [values(e, x) for x in step.sources]
        if e in sender:
            lists.append(values(sender[e], s.programs[sender[e].rank].steps[sender[e].step].sources[0]))
        for target in step.targets:
            put(e, target, total(lists))
    for rank in range(s.ranks):
        for c in range(meaning.chunks(rank, "out")):
            held, wanted = memory[rank].get(meaning.cell(rank, "out", c)), meaning.wanted(rank, c)
            if held is None or set(held) != wanted and s.collective != "barrier":
                raise Wrong(f"rank {rank} out[{c}] holds {held}")
            if not wanted <= set(held) or s.collective != "barrier" and max(held.values()) > 1:
                raise Wrong(f"rank {rank} out[{c}] holds {held}")


def why_wrong(s):
    """None: it is right."""
    meaning = Meaning(s)
    try:
        meaning.check()
        check_places(s, meaning)
        receives = joined(s, meaning)
        order = run_order(s, receives)
        check_races(s, meaning, receives, order)
        check_result(s, meaning, receives, order)
    except Wrong as why:
        return str(why)
    return None


def main():
    from damage import compare
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trellis", help="the program")
    parser.add_argument("count", type=int, help="damaged schedules")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    return compare(o.trellis, o.count, o.seed, progress=True)


if __name__ == "__main__":
    sys.exit(main())
