"""The examples, built against a fresh installation as their readers would, and run."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])
SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
PLACE = BUILD / "examples"
PREFIX = PLACE / "prefix"
SANITIZED = "TRELLIS_SANITIZED:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()


def said(*command, cwd=None, **environment):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, cwd=cwd,
                         env={**os.environ, **environment})
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def as_ranks(program, count, cwd=None, **environment):
    """Runs the program as a launcher would: what each rank said, in order."""
    port = str(free_port())
    started = [subprocess.Popen([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd, env={
        **os.environ, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TRELLIS_SECRET": "examples",
    } | environment) for rank in range(count)]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert all(process.returncode == 0 for process in started), outputs
    return outputs


@unittest.skipIf(SANITIZED, "the library carries a sanitizer, so a plain program cannot load it")
class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(PLACE, ignore_errors=True)
        said("cmake", "--install", BUILD, "--prefix", PREFIX)
        said("cmake", "-G", "Ninja", "-S", SOURCE / "examples", "-B", PLACE / "build", f"-DCMAKE_PREFIX_PATH={PREFIX}",
             f"-DCMAKE_CXX_COMPILER={os.environ['CXX']}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
        said("cmake", "--build", PLACE / "build")

    def test_all_reduce(self):
        for name in ["all_reduce_c", "all_reduce_cpp"]:
            with self.subTest(name):
                self.assertEqual(as_ranks(PLACE / "build" / name, 3),
                                 [f"rank {rank} of 3: the sum is 6\n" for rank in range(3)])
                self.assertEqual(said(PLACE / "build" / name), "rank 0 of 1: the sum is 1\n")

    def test_all_reduce_under_trellis_launch(self):
        trellis = os.environ["TRELLIS"]
        if subprocess.run([trellis, "launch", "--help"], capture_output=True).returncode != 0:
            self.skipTest("this trellis has no launch")
        for name in ["all_reduce_c", "all_reduce_cpp"]:
            with self.subTest(name):
                lines = said(trellis, "launch", "-n", "3", "--", PLACE / "build" / name)
                self.assertEqual(sorted(re.findall(r"rank (\d) of 3: the sum is 6", lines)), ["0", "1", "2"])

    def test_all_reduce_on_devices_that_the_environment_names(self):
        program = PLACE / "build" / "all_reduce_c"
        out = as_ranks(program, 3, TRELLIS_DEVICE="sim:trn2.48xlarge")
        self.assertRegex(out[0], r"^rank 0 of 3: the sum is 6\nsim:trn2.48xlarge core 0: \d+\.\d\d us\n$")
        self.assertEqual(out[1:], [f"rank {rank} of 3: the sum is 6\n" for rank in (1, 2)])
        self.assertEqual(as_ranks(program, 3, TRELLIS_DEVICE="sim:trn2.48xlarge"), out)
        ran = subprocess.run([program], env=os.environ | {"TRELLIS_DEVICE": "abacus"}, capture_output=True, text=True)
        self.assertIn("no device is called 'abacus'; known are host, neuron, sim:MACHINE", ran.stderr)

    def test_a_model_of_ones_own_is_trained(self):
        program = PLACE / "build" / "train_own_model"
        losses = lambda text: [float(loss) for loss in re.findall(r"loss ([\d.]+)", text)]
        with tempfile.TemporaryDirectory() as folder:
            whole = losses(said(program, cwd=folder))
            self.assertEqual(len(whole), 6)
            self.assertLess(whole[-1], 0.2 * whole[0])
        with tempfile.TemporaryDirectory() as folder:
            begun = losses(said(program, "30", cwd=folder))
            resumed = losses(as_ranks(program, 4, cwd=folder)[0])  # two tensor-parallel ranks, twice
            self.assertEqual(len(resumed), 3)
            for one, other in zip(begun + resumed, whole):
                self.assertAlmostEqual(one, other, delta=1e-3)

    def test_a_plug_in_has_parts_that_a_configuration_names(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "text.txt").write_text("to be or not to be, that is the question\n" * 100)
            words = [PREFIX / "bin" / "trellis", "train", SOURCE / "examples" / "own_parts.yaml",
                     "--set", "data.train_path=text.txt"]
            plugin = ["--plugin", PLACE / "build" / "own_parts.so"]
            losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", said(*words, *plugin, cwd=folder))]
            self.assertLess(losses[-1], 0.8 * losses[0])
            ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=folder)
            self.assertIn("model.optim.sched.name is 'inverse_root': expected one of", ran.stderr)
            ran = subprocess.run([str(word) for word in [*words, *plugin, *plugin]], capture_output=True, text=True,
                                 cwd=folder)
            self.assertEqual(ran.returncode, 0, "loading it twice is loading it once: " + ran.stderr)
            shutil.copy(plugin[1], pathlib.Path(folder) / "other.so")
            ran = subprocess.run([str(word) for word in [*words, *plugin, "--plugin", "other.so"]], capture_output=True,
                                 text=True, cwd=folder)
            self.assertEqual((ran.returncode, ran.stderr),
                             (2, "trellis: --plugin other.so: model 'perceptrons' is registered twice\n"))

    def test_one_thread_drives_all_devices(self):
        self.assertEqual(said(PLACE / "build" / "nccl_one_thread"), "2 devices: 0 wrong\n")

    def test_a_thread_for_each_rank(self):
        self.assertEqual(sorted(said(PLACE / "build" / "nccl_thread_per_rank").splitlines()),
                         ["rank 0: 0 wrong", "rank 1: 0 wrong"])

    def test_a_process_for_each_rank(self):
        program = PLACE / "build" / "nccl_process_per_rank"
        if not program.exists() or not shutil.which("mpirun"):
            self.skipTest("no MPI is installed")
        lines = said("mpirun", "--oversubscribe", "-n", "2", program, OMPI_ALLOW_RUN_AS_ROOT="1",
                     OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1").splitlines()
        self.assertEqual(sorted(lines), ["rank 0 of 2: 0 wrong", "rank 1 of 2: 0 wrong"])

    def test_pkg_config_serves_c_programs(self):
        configs = str(next(PREFIX.rglob("trellis-c.pc")).parent)
        libraries = str(pathlib.Path(configs).parent)
        for example, packages in [("all_reduce", ["trellis-c"]), ("nccl_one_thread", ["trellis-nccl", "trellis-cuda"])]:
            flags = said("pkg-config", "--cflags", "--libs", *packages, PKG_CONFIG_PATH=configs).split()
            program = PLACE / f"{example}_by_pkg_config"
            said("cc", SOURCE / "examples" / f"{example}.c", *flags, f"-Wl,-rpath-link,{libraries}", "-o", program)
            said(program, LD_LIBRARY_PATH=f"{libraries}:{libraries}/trellis")


if __name__ == "__main__":
    unittest.main()
