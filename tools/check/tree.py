"""The files of the tree as the checks see them: tracked, or new and not ignored."""
import pathlib
import subprocess
import sys

CPP = {".h", ".cpp"}


def files(root):
    """Paths relative to root, sorted. Without git (an unpacked archive) the tree is walked instead."""
    asked = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
                           capture_output=True, text=True)
    own = subprocess.run(["git", "-C", str(root), "rev-parse", "--show-cdup"], capture_output=True, text=True)
    if asked.returncode == 0 and own.stdout.strip() == "":
        found = {pathlib.Path(name) for name in asked.stdout.split("\0") if name}
        return sorted(path for path in found if (root / path).is_file())
    walked = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return sorted(path for path in walked if path.parts[0] not in {"build", ".git", ".cache"})


def cpp_files(root):
    return [path for path in files(root) if path.suffix in CPP]


def finish(name, complaints, checked):
    """Prints every complaint and exits 1, or says how much was checked; a check that saw nothing has failed."""
    for complaint in complaints:
        print(complaint)
    if not checked:
        sys.exit(f"{name}: found nothing to check")
    print(f"{name}: {checked} checked, {len(complaints)} complaints")
    sys.exit(1 if complaints else 0)


def root_argument():
    return pathlib.Path(sys.argv[-1]).resolve()
