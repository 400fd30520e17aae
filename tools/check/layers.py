"""Fails when an #include climbs the house: layers.py ROOT

A room may include itself and what its row names. Some rooms have doors: what stands there is visible from those files
alone. The folders on top see everything; no room sees them."""
import re

import tree

MAY_INCLUDE = {
    "kernels":  [],
    "schedule": [],
    "sim":      ["schedule", "kernels"],
    "device":   ["kernels"],
    "ccl":      ["schedule", "kernels", "device"],
    "train":    ["schedule", "kernels", "device", "ccl"],
}
DOORS = {("device", "sim"): ["device/simulated.cpp", "device/libnrt/"]}
ON_TOP = ["bench", "examples", "tests", "tools"]

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


def complaints_in(root, path):
    here = path.parts[0]
    if here not in ROOMS:
        yield f"{path}: {here} is no room of the house"
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
        elif len(parts) == 1 and '"' in line:
            yield f"{path}:{number}: includes are written from the root: {found.group(1)}"


if __name__ == "__main__":
    root = tree.root_argument()
    paths = tree.cpp_files(root)
    tree.finish("layers", [each for path in paths for each in complaints_in(root, path)], len(paths))
