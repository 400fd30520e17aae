"""Good schedules damaged at random, and the verifier's answers held against the oracle's."""
import copy
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from oracle import BY_BLOCK, COLLECTIVES, ROOTED, why_wrong
from text import Slice, parse

MOST_STEPS = 120
BATCH = 200  # files per run of the program


def trellis(program, *arguments):
    return subprocess.run([program, "schedule", *arguments], capture_output=True, text=True, timeout=600)


def requests(program, chance):
    """Arguments for `schedule show`, each for an algorithm that may serve them."""
    rows = json.loads(trellis(program, "list", "--json").stdout)["algorithms"]
    names = sorted({(row["algorithm"], row["collective"]) for row in rows})
    for (algorithm, collective), dims in itertools.product(names, ["2", "3", "4", "2x2", "5", "2x3"]):
        ranks = eval(dims.replace("x", "*"))
        more = ["-a", algorithm, "-d", dims]
        if algorithm in ("hierarchical", "split"):
            more += ["--levels", "ring,ring" if algorithm == "hierarchical" else "ring"]
        if collective in ROOTED or collective == "send_recv":
            more += ["--root", str(chance.randrange(ranks))]
        if collective == "send_recv":
            more += ["--peer", str(chance.randrange(ranks))]
        if collective == "permute":
            by = chance.randrange(ranks)
            more += ["--pairs", ",".join(f"{r}:{(r + by) % ranks}" for r in range(ranks) if r == 0 or r % 3)]
        more += ["--in-place"] * (collective != "all_to_all_v" and chance.random() < 0.4)
        more += chance.choice([[], [], ["--channels", "2"], ["--segments", "2"]])
        yield [collective, *more]


def victims(program, chance, most=None):
    found = []
    asked = list(requests(program, chance))
    chance.shuffle(asked)
    for arguments in asked:
        ran = trellis(program, "show", *arguments)
        if ran.returncode == 0 and 0 < len(re.findall(r"^\d+ ", ran.stdout, re.M)) <= MOST_STEPS:
            found.append(parse(ran.stdout))
        if most and len(found) == most:
            break
    return found


def some_step(s, chance):
    programs = [p for p in s.programs if p.steps]
    program = chance.choice(programs)
    return program, chance.randrange(len(program.steps))


def near(chance, number):
    return number + chance.choice([-2, -1, 1, 2])


def change_waits(s, chance):
    program, i = some_step(s, chance)
    step = program.steps[i]
    kind = chance.randrange(3)
    if kind == 0 and i:
        step.after.append(chance.randrange(i))
    elif step.after and kind == 1:
        step.after[chance.randrange(len(step.after))] = chance.randrange(max(1, i))
    elif step.after:
        step.after.pop(chance.randrange(len(step.after)))


def leave_out(s, chance):
    program, gone = some_step(s, chance)
    del program.steps[gone]
    for step in program.steps:
        step.after = [b - (b > gone) for b in step.after if b != gone]


def do_twice(s, chance):
    program, i = some_step(s, chance)
    again = copy.deepcopy(program.steps[i])
    if again.ends and chance.random() < 0.5:
        again.ends = [(peer, tag + 1) for peer, tag in again.ends]
    program.steps.append(again)


def change_transfer(s, chance):
    program, i = some_step(s, chance)
    step, other = program.steps[i], chance.choice(program.steps)
    if not step.ends:
        return
    peer, tag = step.ends[-1]
    kind = chance.randrange(5)
    if kind == 0:
        step.ends[-1] = (max(0, near(chance, peer)), tag)
    elif kind == 1:
        step.ends[-1] = (peer, max(0, near(chance, tag)))
    elif kind == 2 and other.ends:
        step.ends, other.ends = other.ends[:1 + (step.op == "send")], step.ends[:1 + (other.op == "send")]
    elif kind == 3:
        step.channel ^= 1
    else:
        step.ends.reverse()


def change_place(s, chance):
    program, i = some_step(s, chance)
    step, other = program.steps[i], chance.choice(program.steps)
    lists = [places for places in (step.targets, step.sources) if places]
    places = chance.choice(lists)
    n = chance.randrange(len(places))
    buffer, first, count = places[n]
    kind = chance.randrange(5)
    if kind == 0:
        places[n] = Slice(buffer, max(0, near(chance, first)), count)
    elif kind == 1:
        places[n] = Slice(buffer, first, max(1, near(chance, count)))
    elif kind == 2:
        places[n] = Slice(chance.choice(["in", "out", "tmp"]), first, count)
    elif kind == 3 and step.targets and other.targets:
        step.targets[0], other.targets[0] = other.targets[0], step.targets[0]
    elif step.sources and other.sources:
        step.sources[0], other.sources[0] = other.sources[0], step.sources[0]


def change_op(s, chance):
    program, i = some_step(s, chance)
    step = program.steps[i]
    if step.op == "recv_reduce":
        step.op, step.sources = "recv", []
    elif step.op == "recv":
        step.op, step.sources = "recv_reduce", [step.targets[0]]
    elif step.op == "copy" and len(step.targets) == 1:
        step.op, step.sources = "reduce", [step.sources[0], step.targets[0]]
    elif step.op == "reduce":
        if chance.random() < 0.5:
            step.sources.append(chance.choice(step.sources))
        else:
            step.op, step.sources = "copy", step.sources[:1]


def change_room(s, chance):
    program, _ = some_step(s, chance)
    if program.rooms:
        n = chance.randrange(len(program.rooms))
        program.rooms[n] = max(0, near(chance, program.rooms[n]))
    elif program.scratch:
        program.scratch += chance.choice([-1, 1])


def change_head(s, chance):
    kind = chance.randrange(8)
    if kind == 0:
        s.collective = chance.choice(COLLECTIVES)
        s.root *= s.collective in ROOTED | {"send_recv"}
        s.peer *= s.collective == "send_recv"
        s.pairs = s.pairs if s.collective == "permute" else []
    elif kind == 1 and s.collective in ROOTED | {"send_recv"}:
        s.root = chance.randrange(s.ranks)
    elif kind == 2:
        s.in_place = not s.in_place
    elif kind == 3:
        s.even = not s.even
    elif kind == 4:
        s.pieces = max(1, chance.choice([s.pieces - 1, s.pieces + 1, s.pieces * 2]))
    elif kind == 5 and s.collective == "send_recv":
        s.peer = chance.randrange(s.ranks)
    elif kind == 6 and s.pairs:
        s.pairs.pop()
    else:
        s.channels = max(1, near(chance, s.channels))


def everywhere(s, chance):
    """A generator's mistake, on all ranks alike."""
    chunks = s.pieces * (s.ranks if s.collective in BY_BLOCK else 1)
    buffer, old, new = chance.choice(["in", "out", "tmp"]), chance.randrange(chunks), chance.randrange(chunks)
    for program in s.programs:
        for step in program.steps:
            for places in (step.targets, step.sources):
                places[:] = [Slice(b, new if (b, f, c) == (buffer, old, 1) else f, c) for b, f, c in places]


def number_anew(s, chance):
    """Not damage: tags are names, and any will do."""
    lanes = {}
    for rank, program in enumerate(s.programs):
        for step in program.steps:
            for peer, tag in step.ends if step.op == "send" else []:
                lanes.setdefault((rank, peer, step.channel), []).append(tag)
    new = {lane: dict(zip(tags, chance.sample(tags, len(tags)))) for lane, tags in lanes.items()}
    for rank, program in enumerate(s.programs):
        for step in program.steps:
            lane = [(rank, peer) if step.op == "send" else (peer, rank) for peer, _ in step.ends]
            step.ends = [(peer, new[(*at, step.channel)][tag]) for at, (peer, tag) in zip(lane, step.ends)]


def list_anew(s, chance):
    """Not damage: any order will do that lists a step after those that it waits for."""
    for program in s.programs:
        left, order = list(range(len(program.steps))), []
        while left:
            free = [i for i in left if not set(program.steps[i].after) & set(left)]
            order.append(chance.choice(free))
            left.remove(order[-1])
        place = {old: new for new, old in enumerate(order)}
        program.steps = [program.steps[i] for i in order]
        for step in program.steps:
            step.after = sorted(place[b] for b in step.after)


DAMAGES = [change_waits] * 4 + [change_transfer] * 5 + [change_place] * 6 + [leave_out, do_twice, change_op, change_op,
                                                                             change_room, change_head, everywhere]


def damaged(good, chance):
    s = copy.deepcopy(good)
    for change in (number_anew, list_anew):
        if chance.random() < 0.3:
            change(s, chance)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        if any(program.steps for program in s.programs):
            chance.choice(DAMAGES)(s, chance)
    return s


def verdicts(program, texts):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for n, text in enumerate(texts):
            paths.append(pathlib.Path(folder) / f"{n}.txt")
            paths[-1].write_text(text)
        ran = trellis(program, "verify", "--json", *map(str, paths))
        if ran.returncode not in (0, 1, 2) or ran.stderr:
            raise RuntimeError(f"verify ended with {ran.returncode}: {ran.stderr}")
        return json.loads(ran.stdout)["proofs"]


def compare(program, count, seed, progress=False, most_victims=None):
    """The exit status: 0 when both agree on all."""
    chance = random.Random(seed)
    good = victims(program, chance, most_victims)
    assert good and all(why_wrong(s) is None for s in good), "the oracle refuses what an algorithm made"
    right = 0
    for first in range(0, count, BATCH):
        schedules = [damaged(chance.choice(good), chance) for _ in range(min(BATCH, count - first))]
        texts = [s.text() for s in schedules]
        for text, proof in zip(texts, verdicts(program, texts)):
            why = why_wrong(parse(text))
            right += why is None
            if proof["ok"] != (why is None):
                print(f"{text}\nverify: {proof['fault'] or 'proved'}\noracle: {why or 'right'}")
                return 1
        if progress and sys.stderr.isatty():
            print(f"\r{first + len(texts)} of {count}", end="", file=sys.stderr)
    print(f"{count} damaged schedules of {len(good)} good ones: {right} are right all the same, and verify says the "
          f"same of each")
    return 0
