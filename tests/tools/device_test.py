"""trellis device and trellis neff, from the outside."""
import functools
import json
import os
import pathlib
import re
import socket
import unittest

import program

STANDIN = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"]) / "libnrt/libnrt.so.1"
trellis = functools.partial(program.trellis, timeout=120, TRELLIS_LIBNRT="/nowhere/libnrt.so.1")


class Device(program.Case):
    def test_list_names_what_is_here_and_why_not(self):
        out = trellis("device", "list").stdout
        for word in ["host", "sim:trn2.48xlarge", "neuron", "/nowhere/libnrt.so.1", "aws-neuronx-runtime-lib"]:
            self.assertIn(word, out)

    def test_show_tells_of_the_machine(self):
        out = trellis("device", "show", "sim:trn1.32xlarge", "--core", "3").stdout
        for word in ["16 chips (trn1), 32 cores", "core 3: on chip 1", "to chip 0", "efa", "simulated_time", "lacks"]:
            self.assertIn(word, out)

    def test_show_tells_of_the_hosts_memory(self):
        out = trellis("device", "show", "host").stdout
        limit = int(re.search(r"memory: \d+ of (\d+) bytes", out)[1])
        total = int(re.search(r"MemTotal: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text())[1]) << 10
        self.assertLessEqual(limit, total)

    @unittest.skipUnless(STANDIN.exists(), "the stand-in is not built")
    def test_show_tells_of_what_a_logical_core_is_made(self):
        for machine, given, physical in [("trn2.48xlarge", {}, 2), ("trn1.32xlarge", {}, 1),
                                         ("trn2.48xlarge", {"NEURON_LOGICAL_NC_CONFIG": "1"}, 1)]:
            with self.subTest(machine=machine, given=given):
                out = trellis("device", "show", "neuron", TRELLIS_LIBNRT=str(STANDIN), TRELLIS_NRT_MACHINE=machine,
                              **given).stdout
                self.assertIn(f" {physical} physical,", out)

    def test_a_port_that_another_has_does_not_fail_the_suite(self):
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", 0))
            other.listen()
            taken = other.getsockname()[1]
            ran = trellis("device", "test", "host")
            self.assertEqual(ran.returncode, 0, ran.stdout)
            ran = trellis("device", "test", "host", TRELLIS_NRT_SENDRECV_PORT=str(taken))
            self.assertEqual(ran.returncode, 1, ran.stdout)
            self.assertIn(f"TRELLIS_NRT_SENDRECV_PORT={taken}", ran.stdout)

    def test_every_device_conforms(self):
        for name in ["host", "sim:inf2.48xlarge", "neuron"]:
            with self.subTest(name=name):
                environment = {"TRELLIS_LIBNRT": str(STANDIN)} if STANDIN.exists() else {}
                if name == "neuron" and not environment:
                    self.skipTest(f"{STANDIN} is not built")
                ran = trellis("device", "test", name, "--json", NEURON_RT_LOG_LEVEL="QUIET", **environment)
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertIn("passed", ran.stdout)
                json.loads(ran.stdout)

    def test_what_is_wrong_is_said_in_a_line(self):
        for arguments, words in [(["show", "abacus"], "known are host, neuron, sim:MACHINE"),
                                 (["show", "sim:trn2.48xlarge", "--core", "64"], "64 visible cores"),
                                 (["test", "neuron"], "/nowhere/libnrt.so.1")]:
            ran = trellis("device", *arguments)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(words, ran.stderr)
            self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)


class Neff(program.Case):
    def test_what_is_made_is_shown(self):
        file = self.new_folder() / "reduce.neff"
        self.assertEqual(trellis("neff", "make", "reduce", "-p", "n=4096", "-o", file).returncode, 0)
        out = trellis("neff", "show", file).stdout
        for word in ["name      reduce", "trellis/program.txt", "input     source0: 8192 bytes of bf16", "output    out"]:
            self.assertIn(word, out)
        with open(file, "r+b") as damaged:
            damaged.seek(16)
            damaged.write(b"\x01")
        ran = trellis("neff", "show", file)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("byte 16", ran.stderr)


if __name__ == "__main__":
    unittest.main()
