"""A fresh installation serves a program of ten lines, found by CMake and by pkg-config, also after it was moved."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
CONSUMER = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tests" / "install" / "consumer"
EXAMPLE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "examples" / "nccl_one_thread.c"
PLACE = BUILD / "installed"
HOME_HEADERS = ["cuda.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_fp8.h", "cuda_runtime.h", "cuda_runtime_api.h", "nccl.h",
                "nccl_device.h"]


def said(*command, **environment):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                         env={**os.environ, **environment})
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(PLACE, ignore_errors=True)
        said("cmake", "--install", BUILD, "--prefix", PLACE / "at_first")
        (PLACE / "at_first").rename(PLACE / "moved")
        cls.prefix = PLACE / "moved"
        cls.pkgconfig = next(cls.prefix.rglob("trellis.pc")).parent
        cls.libraries = cls.pkgconfig.parent

    def test_find_package(self):
        said("cmake", "-G", "Ninja", "-S", CONSUMER, "-B", PLACE / "cmake", f"-DCMAKE_PREFIX_PATH={self.prefix}",
             f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}")
        said("cmake", "--build", PLACE / "cmake")
        self.assertEqual(said(PLACE / "cmake" / "consumer"), "proved\n")

    def test_pkg_config(self):
        flags = said("pkg-config", "--cflags", "--libs", "trellis", PKG_CONFIG_PATH=str(self.pkgconfig)).split()
        program = PLACE / "by_pkg_config"
        said(os.environ["CXX"], CONSUMER / "consumer.cpp", *flags, "-o", program)
        self.assertEqual(said(program, LD_LIBRARY_PATH=str(self.libraries)), "proved\n")

    def test_the_doors(self):
        """Each <trellis/NAME.h> compiles alone, and the simulator answers a program as it answers the command line."""
        flags = said("pkg-config", "--cflags", "--libs", "trellis", PKG_CONFIG_PATH=str(self.pkgconfig)).split()
        doors = [path.name for path in (self.prefix / "include" / "trellis").glob("*.h") if path.name != "trellis.h"]
        self.assertIn("simulate.h", doors)
        for door in doors:
            with self.subTest(door):
                said(os.environ["CXX"], *flags, "-x", "c++", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-include",
                     f"trellis/{door}", "/dev/null")
        program = PLACE / "simulate"
        said(os.environ["CXX"], self.prefix / "share" / "trellis" / "examples" / "simulate.cpp", *flags, "-o", program)
        lines = said(program).splitlines()  # without LD_LIBRARY_PATH
        sim = json.loads(said(self.prefix / "bin" / "trellis", "sim", "all_reduce", "-a", "kangaring", "-b", "64MiB", "--json"))
        self.assertEqual(lines[0].split()[:2], [f"{sim['time_us']:.0f}", "us,"])
        self.assertIn(" by kangaring", lines[0])
        self.assertGreater(int(lines[2].split()[1]), int(lines[0].split()[0]))  # of the dead link

    def test_what_the_program_says_of_itself(self):
        share = self.prefix / "share"
        self.assertTrue((share / "man" / "man1" / "trellis-sim.1").read_text().startswith('.TH "trellis-sim" 1 '))
        for name in ("bash-completion/completions/trellis", "zsh/site-functions/_trellis",
                     "fish/vendor_completions.d/trellis.fish"):
            self.assertIn("trellis completion words --", (share / name).read_text())
        for name in ("README.md", "LICENSE", "docs/program.md", "docs/tutorials/README.md"):
            self.assertTrue((share / "doc" / "trellis" / name).exists(), name)

    def test_validate_has_its_records(self):
        self.assertIn("net.rdma", said(self.prefix / "bin" / "trellis", "validate", "--only", "net.rdma"))

    def test_the_program_finds_its_library(self):
        self.assertRegex(said(self.prefix / "bin" / "trellis", "--version"), r"^trellis ")

    def test_headers_and_nothing_else_below_include(self):
        installed = [path for path in (self.prefix / "include").rglob("*") if path.is_file()]
        self.assertTrue(installed)
        self.assertEqual({path.suffix for path in installed}, {".h"})
        self.assertEqual({path.relative_to(self.prefix).parts[:2] for path in installed},
                         {("include", name) for name in ["trellis", *HOME_HEADERS]})

    def test_nccl_home(self):
        """As a makefile for NVIDIA's finds headers and libraries, told NCCL_HOME and CUDA_HOME."""
        program = PLACE / "by_nccl_home"
        said("cc", EXAMPLE, f"-I{self.prefix}/include", f"-L{self.prefix}/lib64", "-lcudart", f"-L{self.prefix}/lib",
             "-lnccl", f"-Wl,-rpath-link,{self.prefix}/lib", "-o", program)
        self.assertEqual(said(program, LD_LIBRARY_PATH=f"{self.prefix}/lib"), "2 devices: 0 wrong\n")

    def test_each_header_of_nccl_home_compiles_alone(self):
        for header in HOME_HEADERS:
            for compiler, language, standard in [("cc", "c", "c99"), (os.environ["CXX"], "c++", "c++14")]:
                with self.subTest(header, language=language):
                    said(compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                         f"-I{self.prefix}/include", "-include", header, "/dev/null")

    def test_not_in_everybodys_prefix(self):
        stage = PLACE / "stage"
        said("cmake", "--install", BUILD, "--prefix", "/usr/local", DESTDIR=str(stage))
        self.assertTrue(next(stage.rglob("include/trellis/nccl/nccl.h")))
        self.assertFalse((stage / "usr/local/include/nccl.h").exists())


if __name__ == "__main__":
    unittest.main()
