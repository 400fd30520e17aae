"""Prints the folders of rooms and wings with their lines, and the folders that each includes, as a Markdown table:
include_graph.py [ROOM...] ROOT. tests/README.md says what is allowed; layers.py checks it."""
import collections
import pathlib
import sys

import layers
import tree


def folder(path, room):
    return layers.folder_of(path, room) if path.is_relative_to(room) else None


def table(root, room):
    lines, arrows = collections.Counter(), collections.defaultdict(collections.Counter)
    for path in tree.cpp_files(root):
        if not path.is_relative_to(room):
            continue
        text = (root / path).read_text().splitlines()
        here = folder(path, room)
        lines[here] += len(text)
        for line in text:
            found = layers.INCLUDE.match(line)
            there = folder(pathlib.PurePath(found.group(1)), room) if found else None
            if there not in (None, here, "."):
                arrows[here][there] += 1
    order = [name for name in [".", *layers.FOLDERS[room], "main"] if lines[name]]
    yield f"| {room}/ | lines | includes, with how many include lines |"
    yield "|---|---|---|"
    for name in reversed(order):
        to = ", ".join(f"{other} {arrows[name][other]}" for other in reversed(order) if arrows[name][other])
        shown = {".": "its headers", "main": "its sources"}.get(name, name)
        yield f"| {shown} | {lines[name]:,} | {to} |"
    up = [(a, b) for a in arrows for b in arrows[a] if order.index(b) > order.index(a)]
    yield ""
    yield f"{sum(len(to) for to in arrows.values())} arrows, {len(up)} of them upwards."
    yield ""


if __name__ == "__main__":
    for name in sys.argv[1:-1] or ["sim", "sim/hardware", "sim/cluster", "ccl", "tools"]:
        print("\n".join(table(tree.root_argument(), name)))
