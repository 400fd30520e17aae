"""Fails when a file or folder has a name that says nothing, and so attracts everything, and when two types of the product
have one name: names.py ROOT

A type is what a header defines in a namespace; what a class or a source defines inside itself is its own."""
import collections
import re

import cpp_functions
import tree

SAYS_NOTHING = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "base"}
NO_PRODUCT = {"tests", "bench", "examples"}
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?)\s+"
                  r"(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*(\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)


def names_that_say_nothing(paths):
    seen = {part for path in paths for part in [path, *path.parents]}
    for path in sorted(seen):
        words = set(re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", path.name).lower()))
        for word in sorted(words & SAYS_NOTHING):
            yield f"{path}: '{word}' says nothing; name the idea, or put it next to its only user"


def types_in(text):
    """The types that a namespace of the header holds; specializations of a template are none."""
    code = cpp_functions.blanked(text)
    inside, start = [], 0  # of each open brace, whether it is a namespace's
    for at, char in enumerate(code):
        if char == "{":
            head = code[start:at].strip()
            if all(inside) and (found := TYPE.match(head)):
                yield found[1]
            inside.append(cpp_functions.NAMESPACE.search(head) is not None)
        elif char == "}" and inside:
            inside.pop()
        if char in "{};":
            start = at + 1


def types_of_one_name(root, paths):
    where = collections.defaultdict(set)
    for path in paths:
        if path.suffix == ".h" and path.parts[0] not in NO_PRODUCT:
            for name in types_in((root / path).read_text()):
                where[name].add(str(path))
    for name, found in sorted(where.items()):
        if len(found) > 1:
            yield f"{name} is the name of {len(found)} types: rename one of those in {', '.join(sorted(found))}"


if __name__ == "__main__":
    root = tree.root_argument()
    paths = tree.files(root)
    tree.finish("names", [*names_that_say_nothing(paths), *types_of_one_name(root, paths)], len(paths))
