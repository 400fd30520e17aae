"""What the libraries show to linkers: every declared function, once and versioned, and nothing beside."""
import os
import pathlib
import re
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
API = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "ccl" / "api"


def shown(library):
    """Names that a library defines, with their versions."""
    ran = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)],
                         capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in ran.stdout.splitlines() if line.split()[-2] in "TWViB"}


def declared(folder, pattern):
    return {name for path in sorted((API / folder).rglob("*.h")) for name in re.findall(pattern, path.read_text())}


class Exports(unittest.TestCase):
    def test_the_c_api_is_versioned(self):
        names = declared("c", r"TRELLIS_API[^;(]*?(trellis_\w+)\(")
        found = {name for name in shown(BUILD / "libtrellis.so") if name.startswith("trellis_")}
        self.assertGreater(len(names), 50)
        nodes = re.findall(r"(TRELLIS_1\.\d) \{(.*?)\}", (API / "trellis.map").read_text(), re.DOTALL)
        node_of = {name: node for node, text in nodes[1:] for name in re.findall(r"trellis_\w+", text)}
        self.assertEqual(found, {f"{name}@@{node_of.get(name, 'TRELLIS_1.0')}" for name in names})

    def test_libnccl_shows_functions_and_their_twins(self):
        names = declared("nccl", r"TRELLIS_NCCL\(\s*(?:const char\*|\w+), (nccl\w+)[,)]")
        self.assertGreater(len(names), 80)
        self.assertEqual(shown(BUILD / "shaped" / "libnccl.so"), names | {f"p{name}" for name in names})

    def test_libnccl_has_the_name_that_programs_look_for(self):
        said = subprocess.run(["readelf", "-d", str(BUILD / "shaped" / "libnccl.so")], capture_output=True, text=True,
                              check=True).stdout
        self.assertRegex(said, r"SONAME.*\[libnccl\.so\.2\]")

    def test_the_cuda_calls_show_nothing_else(self):
        names = declared("cuda", r"TRELLIS_CUDA [^(;]*?(cuda\w+)\(")
        self.assertGreater(len(names), 30)
        self.assertEqual(shown(BUILD / "shaped" / "libtrellis_cudart.so"), names)


if __name__ == "__main__":
    unittest.main()
