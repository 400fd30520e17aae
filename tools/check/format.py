"""Fails when clang-format would change a file: format.py [--fix] ROOT"""
import subprocess
import sys

import tree

if __name__ == "__main__":
    root = tree.root_argument()
    paths = tree.cpp_files(root)
    how = ["-i"] if "--fix" in sys.argv else ["--dry-run", "-Werror"]
    ran = subprocess.run(["clang-format", *how, *map(str, paths)], cwd=root, capture_output=True, text=True)
    tree.finish("format", [ran.stderr + "run tools/format"] if ran.returncode else [], len(paths))
