"""Each check on the tree is attacked: a violation is planted in a fresh folder, and the check must name it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECKS = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "tools" / "check"


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def plant(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run_check(self, check):
        return subprocess.run([sys.executable, "-B", str(CHECKS / f"{check}.py"), str(self.root)],
                              capture_output=True, text=True)

    def assert_passes(self, check):
        ran = self.run_check(check)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def assert_caught(self, check, words):
        ran = self.run_check(check)
        self.assertEqual(ran.returncode, 1, f"not caught: {words}\n{ran.stdout}{ran.stderr}")
        self.assertIn(words, ran.stdout + ran.stderr)


class Layers(Planted):
    # The rule of the README, written a second time: which room may include which.
    ALLOWED = {
        "text": set(), "net": {"text"}, "kernels": {"text"}, "schedule": {"text"}, "sim": {"text", "net", "schedule", "kernels"},
        "device": {"text", "net", "kernels"}, "ccl": {"text", "net", "schedule", "kernels", "device"},
        "train": {"text", "schedule", "kernels", "device", "ccl"},
    }
    ON_TOP = ["bench", "tests", "tools"]

    def test_every_pair_of_rooms(self):
        everything = [*self.ALLOWED, *self.ON_TOP]
        for here in everything:
            allowed = self.ALLOWED.get(here, everything)
            for there in everything:
                with self.subTest(here=here, there=there):
                    self.plant(f"{here}/part.cpp", f'#include "{there}/part.h"\n')
                    if there == here or there in allowed:
                        self.assert_passes("layers")
                    else:
                        self.assert_caught("layers", f"{here}/part.cpp:1: {here} must not include {there}")
                    (self.root / here / "part.cpp").unlink()

    def test_sim_is_seen_through_the_doors_of_device_alone(self):
        for path in ["device/simulated/device.cpp", "device/libnrt/nrt_init.cpp"]:
            self.plant(path, '#include "sim/cluster/machine/machine.h"\n')
            self.assert_passes("layers")
        for path in ["device/simulated.h", "device/host.cpp", "device/libnrt.cpp", "device/neuron/simulated.cpp"]:
            self.plant(path, '#include "sim/cluster/machine/machine.h"\n')
            self.assert_caught("layers", f"{path}:1")
            (self.root / path).unlink()

    def test_ways_around(self):
        for line in ['#include <sim/cluster/price/price.h>', '  #  include "sim/cluster/price/price.h"',
                     '#include "../sim/cluster/price.h"', '#include "schedule/../sim/cluster/price.h"', '#include "price.h"']:
            with self.subTest(line=line):
                self.plant("schedule/part.h", f"#pragma once\n{line}\n")
                self.assert_caught("layers", "schedule/part.h:2")

    def test_folders_of_a_room_are_held_to_their_order(self):
        self.plant("sim/hardware/time/part.h", "#pragma once\n")
        self.plant("sim/cluster/price/part.h", '#pragma once\n#include "sim/hardware/time/part.h"\n')
        self.plant("sim/part.cpp", '#include "sim/cluster/price/part.h"\n')
        self.assert_passes("layers")
        self.plant("sim/hardware/time/other.cpp", '#include "sim/cluster/price/part.h"\n')
        self.assert_caught("layers", "sim/hardware/time/other.cpp:1: sim/hardware must not include sim/cluster, which is above it")
        self.plant("sim/hardware/time/other.cpp", '#include "sim/hardware/figures/part.h"\n')
        self.assert_caught("layers", "sim/hardware/time must not include sim/hardware/figures, which is above it")
        self.plant("sim/hardware/time/other.cpp", '#include "schedule/part.h"\n')
        self.assert_caught("layers", "sim must not include schedule")
        (self.root / "sim/hardware/time/other.cpp").unlink()
        self.plant("sim/part.h", '#pragma once\n#include "sim/hardware/time/part.h"\n')
        self.assert_caught("layers", "sim/part.h:2")
        (self.root / "sim/part.h").unlink()
        self.plant("sim/extras/part.cpp", "")
        self.assert_caught("layers", "extras is no folder of sim")

    def test_a_room_nobody_planned(self):
        self.plant("extras/part.cpp", "")
        self.assert_caught("layers", "extras is no room")

    def test_nothing_to_check_is_no_success(self):
        self.assert_caught("layers", "found nothing")


class Headers(Planted):
    def test_alone(self):
        self.plant("schedule/good.h", "#pragma once\n#include <vector>\ninline std::vector<int> f() { return {}; }\n")
        self.assert_passes("headers")
        self.plant("schedule/bad.h", "#pragma once\nstd::vector<int> f();\n")
        self.assert_caught("headers", "schedule/bad.h: does not compile alone")

    def test_once(self):
        self.plant("schedule/twice.h", "struct A {};\n")
        self.assert_caught("headers", "schedule/twice.h: no #pragma once")


def function(head, lines):
    return head + " {\n" + "  ++x;\n" * (lines - 2) + "}\n"


class Size(Planted):
    def test_files_and_headers(self):
        self.plant("schedule/part.cpp", "\n" * 400)
        self.plant("schedule/part.h", "\n" * 120)
        self.plant("tools/check.py", "\n" * 400)
        self.assert_passes("size")
        for path, lines in [("schedule/part.cpp", 401), ("schedule/part.h", 121), ("tools/check.py", 401)]:
            self.plant(path, "\n" * lines)
            self.assert_caught("size", f"{path}: {lines} lines")
            self.plant(path, "")

    def test_functions(self):
        heads = ["void f()", "template <class T>\nauto f(T x) -> int", "int C::f(int a) const noexcept",
                 "C::C(int a) : a_{a}, b_(2), c_{3}", 'extern "C" int f(int a)', "struct X {};\nX f()",
                 "auto f = [](int x)", "const Registered r{\"{ring\", [](int x)", "int main() try"]
        for head in heads:
            with self.subTest(head=head):
                inner = head.split("\n")[-1] if "struct" in head else head
                extra = inner.count("\n")
                self.plant("schedule/part.cpp", function(head, 60 - extra))
                self.assert_passes("size")
                self.plant("schedule/part.cpp", "namespace a {\n" + function(head, 61 - extra) + "}\n")
                self.assert_caught("size", "61 lines, the limit is 60")

    def test_members(self):
        body = function("  int f(int a)", 61)
        self.plant("schedule/part.cpp", f"class alignas(8) A : public B {{\n public:\n{body}}};\n")
        self.assert_caught("size", "schedule/part.cpp:f: 61 lines")

    def test_what_is_no_function(self):
        many = "  1,\n" * 80
        self.plant("schedule/part.cpp",
                   f"namespace a {{\nstruct B {{\n{'  int x;' * 1}\n" + "  int f(int);\n" * 80 + "};\n"
                   f"constexpr int table[] = {{\n{many}}};\nconst char* text = R\"x(\nvoid f() {{\n" + "\n" * 80 +
                   ")x\";\n/* void f() {\n" + "\n" * 80 + "*/\nint q = 1'000'000;\nchar c = '{';\n}\n")
        self.assert_passes("size")

    def test_python_functions(self):
        self.plant("tools/check.py", "def f():\n" + "    x = 1\n" * 60)
        self.assert_caught("size", "tools/check.py:f: 61 lines")

    def test_folders(self):
        for i in range(26):
            self.plant(f"schedule/part_{i}.cpp", "")
        self.assert_passes("size")
        self.plant("schedule/notes.md", "")
        self.assert_passes("size")
        self.plant("schedule/last.h", "")
        self.assert_caught("size", "schedule: 27 sources, the limit is 26")

    def test_members_of_a_class_stand_in_one_source(self):
        self.plant("ccl/part.cpp", "namespace a {\nvoid Part::f() {}\nPart::~Part() {}\nint Part::Kind::g(int x) { return x; }\n}\n")
        alike = ["std::vector<int> f(int x) { return {}; }\n", "void Other::f() {}\n",
                 "namespace { class Part { void f(); };\nvoid Part::f() {} }\n", "std::function<void(int)> g() { return {}; }\n",
                 "void f() { Part::g(); }\n", "const std::array<int, 2> two{1, 2};\n"]
        for text in alike:
            with self.subTest(text=text):
                self.plant("ccl/other.cpp", text)
                self.assert_passes("size")
        for text in ["int Part::g(std::vector<int> x) const { return 0; }\n", "Part::Part() : a_(1), b_{2} {}\n",
                     "namespace b {\nstd::vector<std::pair<int, int>> Part::all() { return {}; }\n}\n"]:
            with self.subTest(text=text):
                self.plant("ccl/other.cpp", text)
                self.assert_caught("size", "ccl/Part: 2 sources with its members, the limit is 1")
        self.plant("tools/check/size_exceptions.txt", "ccl/Part 2 said why\n")
        self.assert_passes("size")
        self.plant("ccl/other.cpp", "")
        self.assert_caught("size", "ccl/Part has 1 sources with its members and needs no exception")

    def test_exceptions(self):
        exceptions = "tools/check/size_exceptions.txt"
        self.plant("schedule/part.cpp", "\n" * 450)
        self.plant(exceptions, "# said why\nschedule/part.cpp 450 one table, read top to bottom\n")
        self.assert_passes("size")
        self.plant(exceptions, "schedule/part.cpp 449 one table, read top to bottom\n")
        self.assert_caught("size", "450 lines, the limit is 449")
        self.plant(exceptions, "schedule/part.cpp 450\n")
        self.assert_caught("size", "and a reason")
        self.plant("schedule/part.cpp", "\n" * 400)
        self.plant(exceptions, "schedule/part.cpp 450 one table, read top to bottom\n")
        self.assert_caught("size", "needs no exception")
        self.plant(exceptions, "schedule/gone.cpp 450 one table, read top to bottom\n")
        self.assert_caught("size", "there is no schedule/gone.cpp")


class Format(Planted):
    def test_a_space_too_many(self):
        self.plant(".clang-format", (CHECKS.parent.parent / ".clang-format").read_text())
        self.plant("schedule/part.cpp", "int f() { return 1; }\n")
        self.assert_passes("format")
        self.plant("schedule/part.cpp", "int f()  { return 1; }\n")
        self.assert_caught("format", "schedule/part.cpp")


class Names(Planted):
    def test_names_that_say_nothing(self):
        self.plant("schedule/database.cpp", "")
        self.assert_passes("names")
        for path in ["schedule/utils.h", "schedule/ring_helpers.cpp", "common/ring.h", "tools/FileManager.h",
                     "tests/base/ring_test.py"]:
            with self.subTest(path=path):
                self.plant(path, "")
                self.assert_caught("names", "says nothing")
                (self.root / path).unlink()

    def test_two_types_of_one_name(self):
        self.plant("schedule/part.h", "namespace a {\nstruct Part {\n  enum class Kind { one };\n};\nclass Whole;\n}\n")
        for text in ["namespace b {\nstruct Other { struct Part {}; };\n}\n", "namespace b {\nstruct Part;\nPart f();\n}\n",
                     "template <>\nstruct Part<int> {\n};\n", "// struct Part {\n"]:
            with self.subTest(text=text):
                self.plant("ccl/other.h", text)
                self.assert_passes("names")
        for text in ["struct Part {};\n", "namespace b {\nenum class Part : unsigned char { one };\n}\n",
                     "namespace b {\nint f();\ntemplate <class T>\nclass Part final : public T {\n};\n}\n"]:
            with self.subTest(text=text):
                self.plant("ccl/other.h", text)
                self.assert_caught("names", "Part is the name of 2 types: rename one of those in ccl/other.h, schedule/part.h")
        self.plant("ccl/other.h", "")
        self.plant("tests/other.h", "struct Part {};\n")
        self.assert_passes("names")


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Ignored(Planted):
    def test_what_git_ignores_is_not_checked(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.plant(".gitignore", "/build/\n")
        self.plant("build/utils.h", "")
        self.assert_passes("names")
        self.plant("schedule/utils.h", "")
        self.assert_caught("names", "schedule/utils.h")


if __name__ == "__main__":
    unittest.main()
