"""A schedule's text, read and written with no code of ours."""
import collections

OPS = ["send", "recv", "recv_reduce", "copy", "reduce"]
Slice = collections.namedtuple("Slice", "buffer first count")


class Wrong(Exception):
    """Why a schedule is not right."""


class Step:
    """to and sources are slices; ends are (peer, tag); after are numbers of earlier steps."""

    def __init__(self, op):
        self.op, self.channel, self.targets, self.sources, self.ends, self.after = op, 0, [], [], [], []

    def text(self):
        words = [self.op]
        if self.targets:
            words.append(slice_text(self.targets[0]))
        if self.targets and self.sources:
            words.append("=")
        words.append((" + " if self.op == "reduce" else " ").join(slice_text(s) for s in self.sources))
        words += [f"and to {slice_text(s)}" for s in self.targets[1:]]
        if self.ends:
            words.append("to" if self.op == "send" else "from")
            words.append(" and ".join(f"{peer} tag {tag}" for peer, tag in self.ends))
        if self.channel:
            words.append(f"channel {self.channel}")
        if self.after:
            words.append("after " + " ".join(map(str, self.after)))
        return " ".join(word for word in words if word)


class Program:
    """rooms: the data chunk that each scratch chunk is as large as; None: it is not said."""

    def __init__(self, scratch, rooms):
        self.scratch, self.rooms, self.steps = scratch, rooms, []


class Schedule:
    def __init__(self):
        self.collective, self.ranks, self.pieces, self.channels = "", 0, 0, 0
        self.root = self.peer = 0
        self.pairs, self.in_place, self.even, self.programs = [], False, False, []

    def text(self):
        lines = ["trellis schedule 1", f"collective {self.collective}", f"ranks {self.ranks}", f"pieces {self.pieces}",
                 f"root {self.root}", f"peer {self.peer}"]
        if self.pairs:
            lines.append("pairs " + " ".join(f"{a}>{b}" for a, b in self.pairs))
        lines += ["in_place"] * self.in_place + ["even"] * self.even + [f"channels {self.channels}"]
        for rank, program in enumerate(self.programs):
            like = "" if program.rooms is None else " like " + " ".join(map(str, program.rooms))
            lines.append(f"rank {rank} scratch {program.scratch}{like}")
            lines += [f"{i} {step.text()}" for i, step in enumerate(program.steps)]
        return "\n".join(lines) + "\n"


def slice_text(s):
    return f"{s.buffer}[{s.first}]" if s.count == 1 else f"{s.buffer}[{s.first}..{s.first + s.count - 1}]"


def span(text):
    first, _, last = text.partition("..")
    first, last = int(first), int(last or first)
    if last < first or first < 0:
        raise Wrong(f"{text} is no run")
    return first, last


def parse_step(words):
    """Of words after the step's number; each is taken off the front."""
    step = Step(words.pop(0))
    if step.op not in OPS:
        raise Wrong(f"{step.op} is no kind of step")

    def a_slice():
        buffer, _, rest = words.pop(0).partition("[")
        first, last = span(rest.rstrip("]"))
        return Slice(buffer, first, last - first + 1)

    def an_end():
        peer = int(words.pop(0))
        words.pop(0)
        step.ends.append((peer, int(words.pop(0))))

    if step.op != "send":
        step.targets.append(a_slice())
    if step.op not in ("send", "recv"):
        words.pop(0)
    if step.op != "recv":
        step.sources.append(a_slice())
    while words and words[0] == "+":
        words.pop(0)
        step.sources.append(a_slice())
    while step.op == "copy" and words and words[0] == "and":
        del words[:2]
        step.targets.append(a_slice())
    if step.op in ("send", "recv", "recv_reduce"):
        words.pop(0)
        an_end()
        if step.op == "send" and words and words[0] == "and":
            words.pop(0)
            an_end()
    if words and words[0] == "channel":
        step.channel = int(words[1])
        del words[:2]
    if words and words[0] == "after":
        step.after = [int(word) for word in words[1:]]
    return step


def parse(text):
    s = Schedule()
    for line in text.splitlines()[1:]:
        words = line.split()
        if not words or words[0].startswith("#") or words[0] in ("trellis", "algorithm"):
            continue
        if words[0] == "rank":
            rooms = None
            if len(words) > 4:
                rooms = [c for word in words[5:] for first, last in [span(word)] for c in range(first, last + 1)]
            s.programs.append(Program(int(words[3]), rooms))
        elif words[0].isdigit():
            s.programs[-1].steps.append(parse_step(words[1:]))
        elif words[0] in ("in_place", "even"):
            setattr(s, words[0], True)
        elif words[0] == "pairs":
            s.pairs = [tuple(map(int, word.split(">"))) for word in words[1:]]
        elif words[0] == "collective":
            s.collective = words[1]
        else:
            setattr(s, words[0], int(words[1]))
    return s
