"""tools/setup.sh on machines that do not exist: stand-ins for dpkg-query, id, sudo and apt-get say what it would do."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tools" / "setup.sh"


class StandIns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.bin = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def stand_in(self, name, script):
        (self.bin / name).write_text(f"#!/bin/bash\n{script}\n")
        (self.bin / name).chmod(0o755)


class Setup(StandIns):
    def setUp(self):
        super().setUp()
        self.stand_in("dpkg-query", 'echo "installed here"; echo "config-files half"; exit 1')
        self.stand_in("id", "echo 1000")
        self.stand_in("sudo", '[ "$1" = -n ] && exit 1; echo "sudo $*"')
        self.stand_in("apt-get", 'echo "apt-get $*"')

    def need(self, *packages):
        script = f'set -euo pipefail; . "{SETUP}"; need_packages {" ".join(packages)}; echo done'
        return subprocess.run(["bash", "-c", script, "tools/x"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={"PATH": f"{self.bin}:/usr/bin:/bin"})

    def test_nothing_missing_touches_nothing(self):
        ran = self.need("here")
        self.assertEqual((ran.returncode, ran.stdout), (0, "done\n"))

    def test_neither_root_nor_sudo_prints_the_command(self):
        ran = self.need("here", "gone", "half")
        self.assertEqual((ran.returncode, ran.stdout), (2, ""))
        self.assertEqual(ran.stderr.splitlines()[-1],
                         "apt-get update && apt-get install -y --no-install-recommends gone half")

    def test_root_installs(self):
        self.stand_in("id", "echo 0")
        ran = self.need("here", "gone", "half")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(ran.stdout.splitlines(),
                         ["installing Debian packages: gone half", "apt-get update -qq",
                          "apt-get install -y -qq --no-install-recommends gone half", "done"])

    def test_sudo_installs(self):
        self.stand_in("sudo", '[ "$1" = -n ] && exit 0; echo "sudo $*"')
        ran = self.need("gone")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("sudo apt-get update -qq\n", ran.stdout)

    def test_a_failed_installation_fails(self):
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "exit 100")
        self.assertNotIn("done", self.need("gone").stdout)
        self.assertNotEqual(self.need("gone").returncode, 0)


class Groups(StandIns):
    """A build in groups, with a cmake that fails where a file says so."""

    def setUp(self):
        super().setUp()
        self.build = pathlib.Path(self.folder.name) / "build" / "dev"
        self.build.mkdir(parents=True)
        (self.build / "CMakeCache.txt").write_text("TRELLIS_UNITY:BOOL=ON\n")
        self.stand_in("cmake", 'echo "cmake $*"; [ $1 = --build ] || exit 0; [ -s build/dev/alone ] && exit 0; cat says; exit 1')

    def run_build(self, says):
        (pathlib.Path(self.folder.name) / "says").write_text(says)
        script = f'set -euo pipefail; . "{SETUP}"; build_configured dev --target trellis; echo built'
        return subprocess.run(["bash", "-c", script, "tools/x"], capture_output=True, text=True, cwd=self.folder.name,
                              env={"PATH": f"{self.bin}:/usr/bin:/bin"})

    def test_a_group_that_does_not_compile_is_compiled_apart(self):
        ran = self.run_build("FAILED: ccl/CMakeFiles/room_ccl.dir/Unity/unity_room_ccl_7_cxx.cxx.o \nerror: ambiguous\n")
        self.assertEqual((ran.returncode, ran.stdout.splitlines()[-1]), (0, "built"), ran.stdout + ran.stderr)
        self.assertEqual((self.build / "alone").read_text(), "room_ccl_7\n")

    def test_a_source_that_does_not_compile_fails(self):
        ran = self.run_build("FAILED: ccl/CMakeFiles/room_ccl.dir/run/executor.cpp.o \nerror: expected ;\n")
        self.assertNotEqual(ran.returncode, 0)
        self.assertNotIn("built", ran.stdout)



class MissingLibraries(unittest.TestCase):
    def test_all_are_named_at_once_by_debians_names(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(
                ["cmake", "-S", SETUP.parents[1], "-B", folder, "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON",
                 "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON"], capture_output=True, text=True)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn("libraries are missing; on Debian: apt-get install libfmt-dev libcli11-dev\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
