"""How many devices there are is told by TRELLIS_DEVICES."""
import ctypes
import os
import pathlib
import subprocess
import sys
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
SANITIZED = "TRELLIS_SANITIZED:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()


def asked():
    """Prints the result of cudaGetDeviceCount, the number, and what a wrong result means."""
    cuda = ctypes.CDLL(str(BUILD / "shaped" / "libtrellis_cudart.so"))
    cuda.cudaGetErrorString.restype = ctypes.c_char_p
    count = ctypes.c_int(-1)
    result = cuda.cudaGetDeviceCount(ctypes.byref(count))
    print(result, count.value, cuda.cudaSetDevice(3), cuda.cudaGetErrorString(result).decode())


def said(**environment):
    kept = {name: value for name, value in os.environ.items() if name != "TRELLIS_DEVICES"}
    return subprocess.run([sys.executable, __file__, "ask"], capture_output=True, text=True, check=True,
                          env={**kept, **environment}).stdout


@unittest.skipIf(SANITIZED, "the library carries a sanitizer, so a plain program cannot load it")
class Devices(unittest.TestCase):
    def test_as_many_as_the_variable_says(self):
        self.assertRegex(said(TRELLIS_DEVICES="4"), "^0 4 0 ")
        self.assertRegex(said(TRELLIS_DEVICES="1"), "^0 1 101 ")

    def test_at_least_two_without_it(self):
        self.assertGreaterEqual(int(said().split()[1]), 2)

    def test_a_wrong_one_is_refused(self):
        for wrong in ["0", "-1", "4097", "four", "4x"]:
            with self.subTest(wrong):
                self.assertRegex(said(TRELLIS_DEVICES=wrong), "^3 0 101 TRELLIS_DEVICES: expected an integer")


if __name__ == "__main__":
    if sys.argv[1:] == ["ask"]:
        asked()
    else:
        unittest.main()
