"""Fails when a header does not compile alone, or not twice in one file: headers.py ROOT

One that its own source includes before anything else is left to that source, and one that needs a package which is not
installed (nanobind, torch) is counted apart."""
import concurrent.futures
import os
import re
import subprocess

import tree

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-x", "c++"]
DEFINED = ['-DTRELLIS_STANDIN=""']  # by tests/CMakeLists.txt
ROOTS = ["", "python"]              # those that includes begin from


def begins_its_source(root, path):
    source = root / path.with_suffix(".cpp")
    includes = re.findall(r"^#include (.*)", source.read_text(), re.MULTILINE) if source.exists() else []
    return includes[:1] == [f'"{path}"']


def absent_package(root, errors):
    """The header of a package that the compiler did not find, or None."""
    missing = re.search(r"fatal error: (\S+): No such file or directory", errors)
    if missing is None or any((root / begin / missing[1]).parent.is_dir() for begin in ROOTS):
        return None
    return missing[1]


def looked_at(root, path):
    """A complaint or None, and the header of an absent package or None."""
    if "#pragma once" not in (root / path).read_text():
        return f"{path}: no #pragma once", None
    if begins_its_source(root, path):
        return None, None
    compiler = os.environ.get("CXX", "g++")
    source = f'#include "{path}"\n#include "{path}"\n'
    places = [word for begin in ROOTS for word in ("-I", str(root / begin))]
    ran = subprocess.run([compiler, *FLAGS, *DEFINED, *places, "-"], input=source, capture_output=True, text=True)
    if ran.returncode == 0:
        return None, None
    absent = absent_package(root, ran.stderr)
    return (None, absent) if absent else (f"{path}: does not compile alone\n{ran.stderr}", None)


if __name__ == "__main__":
    root = tree.root_argument()
    headers = [path for path in tree.cpp_files(root) if path.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: looked_at(root, path), headers))
    complaints = [complaint for complaint, _ in results if complaint]
    absent = [package for _, package in results if package]
    if absent:
        print(f"headers: {len(absent)} need what is not installed: {', '.join(sorted(set(absent)))}")
    tree.finish("headers", complaints, len(headers) - len(absent))
