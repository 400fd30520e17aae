"""Fails when an #include climbs the house: layers.py ROOT

A room may include itself and what its row names. Some rooms have doors: what stands there is visible from those files
alone. The folders on top see everything; no room sees them. Within a room, folders are held to an order in the same way."""
import pathlib
import re

import tree

MAY_INCLUDE = {
    "text":     [],
    "kernels":  ["text"],
    "schedule": ["text"],
    "sim":      ["text", "schedule", "kernels"],
    "device":   ["text", "kernels"],
    "ccl":      ["text", "schedule", "kernels", "device"],
    "train":    ["text", "schedule", "kernels", "device", "ccl"],
    "launch":   ["text", "schedule", "kernels", "device", "ccl"],
    "measure":  ["text", "schedule", "kernels", "sim", "device", "ccl", "launch"],
}
DOORS = {("device", "sim"): ["device/simulated/", "device/libnrt/"]}
ON_TOP = ["bench", "examples", "python", "tests", "tools"]

# The folders of a room, lowest first: each may include those before it. The room's own headers are below all of them,
# the room's own sources above.
FOLDERS = {
    "schedule": ["builder", "algorithms", "proof", "graph", "formats"],
    "kernels":  ["types", "digest", "dispatch", "reduce", "optimizers", "layers", "lanes", "twins", "check", "measure"],
    "device":   ["streams", "messages", "host", "neff", "nrt", "simulated", "neuron", "conformance", "libnrt"],
    "sim":      ["time", "figures", "machine", "timeline", "network", "price", "choose", "workload", "report", "answer",
                 "tune", "core"],
    "ccl":      ["rendezvous", "transports", "plan", "failure", "divide", "diagnosis", "run", "api"],
    "train":    ["mesh", "config", "pipeline", "step", "layers", "models", "update", "whole", "data",
                 "checkpoint", "cache", "trainer"],
    "measure":  ["published"],
    "tools":    ["program", "picture", "answer", "topo", "schedule", "bench", "tune", "core", "doctor", "launch",
                 "machine", "sim", "device", "neff", "validate", "train"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
ROOMS = [*MAY_INCLUDE, *ON_TOP]


def may_include(path, there):
    here = path.parts[0]
    if here == there or here in ON_TOP:
        return True
    if there in MAY_INCLUDE[here]:
        return True
    return any(str(path) == door or door.endswith("/") and str(path).startswith(door)
               for door in DOORS.get((here, there), []))


def folder_of(path):
    """The folder of the room that holds the file; for the room's own files, "." or "main"."""
    if len(path.parts) > 2:
        return path.parts[1]
    return "." if path.suffix == ".h" else "main"


def climbs_inside(path, included):
    """Whether an include between two files of one room goes from a lower folder to a higher one."""
    order = [".", *FOLDERS[path.parts[0]], "main"]
    return order.index(folder_of(path)) < order.index(folder_of(included))


def complaints_in(root, path):
    here = path.parts[0]
    if here not in ROOMS:
        yield f"{path}: {here} is no room of the house"
        return
    if here in FOLDERS and folder_of(path) not in [".", *FOLDERS[here], "main"]:
        yield f"{path}: {path.parts[1]} is no folder of {here}; the folders stand in tools/check/layers.py, lowest first"
        return
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        parts = found.group(1).split("/")
        if ".." in parts or "." in parts:
            yield f"{path}:{number}: includes are written from the root: {found.group(1)}"
        elif len(parts) > 1 and parts[0] in ROOMS and not may_include(path, parts[0]):
            yield f"{path}:{number}: {here} must not include {parts[0]}"
        elif parts[0] == here and here in FOLDERS and climbs_inside(path, pathlib.PurePath(found.group(1))):
            yield f"{path}:{number}: {'/'.join(path.parts[:2])} must not include {'/'.join(parts[:2])}, which is above it"
        elif len(parts) == 1 and '"' in line:
            yield f"{path}:{number}: includes are written from the root: {found.group(1)}"


if __name__ == "__main__":
    root = tree.root_argument()
    paths = tree.cpp_files(root)
    tree.finish("layers", [each for path in paths for each in complaints_in(root, path)], len(paths))
