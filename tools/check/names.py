"""Fails when a file or folder has a name that says nothing, and so attracts everything: names.py ROOT"""
import re

import tree

SAYS_NOTHING = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "base"}


def complaints_in(paths):
    seen = {part for path in paths for part in [path, *path.parents]}
    for path in sorted(seen):
        words = set(re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", path.name).lower()))
        for word in sorted(words & SAYS_NOTHING):
            yield f"{path}: '{word}' says nothing; name the idea, or put it next to its only user"


if __name__ == "__main__":
    paths = tree.files(tree.root_argument())
    tree.finish("names", list(complaints_in(paths)), len(paths))
