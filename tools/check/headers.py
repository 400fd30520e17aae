"""Fails when a header does not compile alone, or not twice in one file: headers.py ROOT

One that its own source includes before anything else is left to that source."""
import concurrent.futures
import os
import re
import subprocess

import tree

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-x", "c++"]


def begins_its_source(root, path):
    source = root / path.with_suffix(".cpp")
    includes = re.findall(r"^#include (.*)", source.read_text(), re.MULTILINE) if source.exists() else []
    return includes[:1] == [f'"{path}"']


def complaint_about(root, path):
    if "#pragma once" not in (root / path).read_text():
        return f"{path}: no #pragma once"
    if begins_its_source(root, path):
        return None
    compiler = os.environ.get("CXX", "g++")
    source = f'#include "{path}"\n#include "{path}"\n'
    ran = subprocess.run([compiler, *FLAGS, "-I", str(root), "-"], input=source, capture_output=True, text=True)
    return f"{path}: does not compile alone\n{ran.stderr}" if ran.returncode else None


if __name__ == "__main__":
    root = tree.root_argument()
    headers = [path for path in tree.cpp_files(root) if path.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        complaints = [each for each in pool.map(lambda path: complaint_about(root, path), headers) if each]
    tree.finish("headers", complaints, len(headers))
