"""The files of the tree as the checks see them: tracked, or new and not ignored."""
import os
import pathlib
import subprocess
import sys

CPP = {".h", ".cpp"}


def files(root):
    """Paths relative to root, sorted. Without git's answer (an unpacked archive) the tree is walked instead."""
    if asked_of_git(root, "rev-parse", "--show-cdup") == "\n":  # root is a repository, and not a folder of one
        found = {pathlib.Path(name) for name in
                 asked_of_git(root, "ls-files", "-co", "--exclude-standard", "-z").split("\0") if name}
        return sorted(path for path in found if (root / path).is_file())
    return sorted(walked(root))


def asked_of_git(root, *words):
    """What git prints; empty where it fails or is not installed. A tree of another user, as in a container, is read."""
    try:
        return subprocess.run(["git", "-c", f"safe.directory={root}", "-C", str(root), *words], capture_output=True,
                              text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return ""


def walked(root):
    for folder, folders, names in os.walk(root):
        if pathlib.Path(folder) == root:  # a build changes while it is walked
            folders[:] = [name for name in folders if name not in {"build", ".git", ".cache"}]
        paths = (pathlib.Path(folder, name) for name in names if name != ".git")
        yield from (path.relative_to(root) for path in paths if path.is_file())


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
