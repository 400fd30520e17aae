"""Fails when an #include climbs the house: layers.py ROOT

A room may include itself and what its row names. Some rooms have doors: what stands there is visible from those files
alone. The folders on top see everything; no room sees them. Within a room, folders are held to an order in the same way,
and so are the folders of its wings."""
import pathlib
import re

import tree

MAY_INCLUDE = {
    "text":     [],
    "net":      ["text"],
    "kernels":  ["text"],
    "schedule": ["text"],
    "sim":      ["text", "net", "schedule", "kernels"],
    "sim/hardware": ["text", "kernels"],
    "sim/core": ["text", "kernels"],
    "device":   ["text", "net", "kernels"],
    "ccl":      ["text", "net", "schedule", "kernels", "device"],
    "train":    ["text", "schedule", "kernels", "device", "ccl"],
    "launch":   ["text", "net", "schedule", "kernels", "device", "ccl"],
    "measure":  ["text", "schedule", "kernels", "sim", "device", "ccl", "launch"],
}
DOORS = {("device", "sim"): ["device/simulated/", "device/libnrt/"], ("ccl", "sim"): ["ccl/api/nccl/group_time_estimate.cpp"]}
ON_TOP = ["bench", "examples", "python", "tests", "tools"]

# The folders of a room or wing, lowest first: each may include those before it. The room's own headers are below all of
# them, the room's own sources above.
FOLDERS = {
    "schedule": ["builder", "algorithms", "proof", "graph", "formats"],
    "kernels":  ["types", "dispatch", "reduce", "optimizers", "layers", "lanes", "twins", "check", "measure"],
    "device":   ["streams", "messages", "host", "neff", "nrt", "simulated", "neuron", "conformance", "libnrt"],
    "sim":      ["hardware", "core", "cluster"],
    "sim/hardware": ["time", "figures", "chip", "timeline", "report"],
    "sim/cluster": ["machine", "operation", "network", "price", "choose", "workload", "answer", "tune"],
    "ccl":      ["rendezvous", "transports", "plan", "failure", "divide", "diagnosis", "run", "api"],
    "train":    ["mesh", "config", "pipeline", "step", "layers", "models", "update", "whole", "data",
                 "checkpoint", "cache", "trainer"],
    "measure":  ["published", "calibration"],
    "tools":    ["program", "python_commands", "picture", "answer", "topo", "schedule", "bench", "tune", "core", "doctor",
                 "launch", "machine", "sim", "device", "neff", "train", "layouts", "validate", "calibrate"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
ROOMS = [*(name for name in MAY_INCLUDE if "/" not in name), *ON_TOP]


def may_include(path, there):
    here = path.parts[0]
    if here == there or here in ON_TOP:
        return True
    if there in MAY_INCLUDE.get("/".join(path.parts[:2]), MAY_INCLUDE[here]):
        return True
    return any(str(path) == door or door.endswith("/") and str(path).startswith(door)
               for door in DOORS.get((here, there), []))


def folder_of(path, holder):
    """The folder of the holder (a room or a wing) that has the file; for the holder's own files, "." or "main"."""
    rest = path.relative_to(holder).parts
    if len(rest) > 1:
        return rest[0]
    return "." if path.suffix == ".h" else "main"


def climbs_inside(path, included):
    """The two folders of a room or wing, if the include goes from the lower to the higher; else None."""
    for holder, folders in FOLDERS.items():
        if path.is_relative_to(holder) and included.is_relative_to(holder):
            order = [".", *folders, "main"]
            here, there = folder_of(path, holder), folder_of(included, holder)
            if here in order and there in order and order.index(here) < order.index(there):
                return holder if here in (".", "main") else f"{holder}/{here}", f"{holder}/{there}"
    return None


def complaints_in(root, path):
    here = path.parts[0]
    if here not in ROOMS:
        yield f"{path}: {here} is no room of the house"
        return
    for holder, folders in FOLDERS.items():
        if path.is_relative_to(holder) and folder_of(path, holder) not in [".", *folders, "main"]:
            yield (f"{path}: {folder_of(path, holder)} is no folder of {holder}; the folders stand in tools/check/layers.py, "
                   "lowest first")
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
        elif climbs := climbs_inside(path, pathlib.PurePath(found.group(1))):
            yield f"{path}:{number}: {climbs[0]} must not include {climbs[1]}, which is above it"
        elif len(parts) == 1 and '"' in line:
            yield f"{path}:{number}: includes are written from the root: {found.group(1)}"


if __name__ == "__main__":
    root = tree.root_argument()
    paths = tree.cpp_files(root)
    tree.finish("layers", [each for path in paths for each in complaints_in(root, path)], len(paths))
