"""tools/setup.sh on machines that do not exist: stand-ins for dpkg-query, id, sudo and apt-get say what it would do."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SETUP = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tools" / "setup.sh"
BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "tests"  # from /tmp programs may not be started everywhere
PATIENT = "-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3"


class StandIns(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=BUILD)
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
                         ["installing Debian packages: gone half", f"apt-get {PATIENT} update -qq",
                          f"apt-get {PATIENT} install -y -qq --no-install-recommends gone half", "done"])

    def test_sudo_installs(self):
        self.stand_in("sudo", '[ "$1" = -n ] && exit 0; echo "sudo $*"')
        ran = self.need("gone")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(f"sudo apt-get {PATIENT} update -qq\n", ran.stdout)

    def test_a_failed_installation_fails(self):
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", "exit 100")
        self.assertNotIn("done", self.need("gone").stdout)
        self.assertNotEqual(self.need("gone").returncode, 0)

    def test_lists_that_cannot_be_renewed_do_not_stop_an_installation(self):
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", '[[ "$*" = *update* ]] && exit 100; echo "apt-get $*"')
        ran = self.need("gone")
        self.assertEqual((ran.returncode, ran.stdout.splitlines()[-1]), (0, "done"), ran.stderr)
        self.assertIn("apt-get update failed; going on with the lists that are there", ran.stderr)


class Jobs(StandIns):
    """How many compilers and tests run at once, on machines with quotas and little memory."""

    def setUp(self):
        super().setUp()
        self.stand_in("nproc", "echo 64")
        self.own = self.bin / "cgroup"
        self.own.write_text("0::/jobs/pod\n")
        (self.bin / "groups" / "jobs" / "pod").mkdir(parents=True)

    def quota(self, group, words):
        (self.bin / "groups" / group / "cpu.max").write_text(words + "\n")

    def ask(self, command):
        return subprocess.run(["bash", "-c", f'set -euo pipefail; . "{SETUP}"; {command}'], capture_output=True, text=True,
                              env={"PATH": f"{self.bin}:/usr/bin:/bin"}, check=True).stdout.strip()

    def cpus(self):
        return self.ask(f"usable_cpus {self.bin}/groups {self.own}")

    def test_without_a_quota_all_cpus_are_usable(self):
        self.assertEqual(self.cpus(), "64")
        self.quota("jobs", "max 100000")
        self.assertEqual(self.cpus(), "64")
        self.own.unlink()
        self.assertEqual(self.cpus(), "64")

    def test_the_least_quota_of_the_groups_counts(self):
        self.quota("jobs", "350000 100000")
        self.assertEqual(self.cpus(), "4")
        self.quota("jobs/pod", "50000 50000")
        self.assertEqual(self.cpus(), "1")
        self.own.write_text("0::/\n")
        self.quota(".", "800000 100000")
        self.assertEqual(self.cpus(), "8")

    def test_each_compiler_has_memory(self):
        info = self.bin / "meminfo"
        self.stand_in("nproc", "echo 8")
        for kilobytes, compilers in [(100_000_000, "8"), (3_200_000, "2"), (900_000, "1")]:
            info.write_text(f"MemTotal: 200000000 kB\nMemAvailable: {kilobytes} kB\n")
            self.assertEqual(self.ask(f"usable_cpus() {{ nproc; }}; compilers {info}"), compilers)
        self.assertEqual(self.ask(f"usable_cpus() {{ nproc; }}; compilers {info}.gone"), "8")


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
                ["cmake", "-G", "Ninja", "-S", SETUP.parents[1], "-B", folder, "-DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON",
                 "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON"], capture_output=True, text=True)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn("libraries are missing; on Debian: apt-get install libfmt-dev libcli11-dev\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
