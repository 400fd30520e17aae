#!/usr/bin/env python3
"""Prints what libtrellis shows to C++ programs, a signature a line: abi.py LIBRARY. tests/install/abi.txt is what it printed
last. Inline functions are left out, since each program has its own."""
import subprocess
import sys


def shown(library):
    """Demangled, with the versions of the interface left out."""
    ran = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    symbols = [line.split()[-2:] for line in ran.stdout.splitlines()]
    names = [name.partition("@")[0] for kind, name in symbols if kind == "T"]
    demangled = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return sorted(set(line for line in demangled.splitlines() if not line.startswith("trellis_")))


if __name__ == "__main__":
    print("\n".join(shown(sys.argv[1])))
