"""Which sources cmake/unity.py lets compile as one: what one keeps to itself must mean nothing in another."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

UNITY = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"]) / "cmake" / "unity.py"


class Groups(unittest.TestCase):
    def groups(self, *texts, most=8):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(texts):
                (pathlib.Path(folder) / f"{number}.cpp").write_text(text)
            ran = subprocess.run([sys.executable, "-B", UNITY, str(most), *(f"{n}.cpp" for n in range(len(texts)))],
                                 cwd=folder, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            return [line.replace(".cpp", "") for line in ran.stdout.splitlines()]

    def test_sources_with_nothing_in_common_go_together(self):
        self.assertEqual(self.groups("namespace a { namespace { int one() { return 1; } } }",
                                     "namespace a { namespace { int two() { return 2; } } }", "int x;"), ["0;1;2"])

    def test_a_group_has_a_limit(self):
        self.assertEqual(self.groups("", "", "", most=2), ["0;1", "2"])

    def test_what_is_private_to_one_stands_in_no_other(self):
        uses = "int f() { return part; }\n"
        for kept in ["namespace { int part = 0; }", "namespace { constexpr int part[] = {1, 2}; }",
                     "namespace { struct part { int x; }; }", "namespace { enum class part { a }; }",
                     "namespace { template <class T> T part(T x) { return x; } }",
                     "namespace b { namespace { void other() { if (true) {} } int part(int x) { return x; } } }",
                     "static int part() { return 0; }", "constexpr int part = 1;", "#define part(x) x",
                     "namespace { using part = int; }", "namespace { using other::part; }", "namespace part = other;"]:
            with self.subTest(kept=kept):
                self.assertEqual(self.groups(kept + "\n", uses), ["0", "1"])
                self.assertEqual(self.groups(uses, kept + "\n", ""), ["0;2", "1"])

    def test_members_texts_and_comments_are_no_use_of_a_name(self):
        kept = "namespace { int part = 0; }\n"
        self.assertEqual(self.groups(kept, 'int f(X& x) { return x.part + X::part + g("part"); }  // part\n'), ["0;1"])

    def test_one_alias_may_stand_in_both(self):
        alias = "namespace { using schedule::Rank; namespace sim = trellis::sim; }\n"
        self.assertEqual(self.groups(alias, alias), ["0;1"])
        self.assertEqual(self.groups(alias, alias.replace("trellis::sim", "sim::core")), ["0", "1"])

    def test_a_namespace_opened_for_all_that_follows(self):
        opened = "using namespace trellis::nccl;\n"
        self.assertEqual(self.groups(opened, "int x;\n", opened), ["0;2", "1"])
        self.assertEqual(self.groups("using namespace std::chrono_literals;\n", "int x;\n"), ["0;1"])

    def test_a_source_that_replaces_operator_new_stays_alone(self):
        self.assertEqual(self.groups("int x;\n", "void* operator new(std::size_t n) { return take(n); }\n", "int y;\n"),
                         ["0;2", "1"])


if __name__ == "__main__":
    unittest.main()
