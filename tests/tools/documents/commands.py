"""Every command of our program that a README or a page of docs/ shows, as a reader would type it: commands.py [PAGE...]

Prints a line for each, and ends with status 1 when one failed that commands_apart.txt does not name. The commands of a
page run one after the other in one folder, in which the tree's files are found. Those of docs/tutorials, and those that
a page of docs/howto shows with their output, are tested by tutorials_test.py, which also compares what they print."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("TRELLIS_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[3])
sys.path.append(str(SOURCE / "tools/check"))
import tree  # noqa: E402

APART = pathlib.Path(__file__).with_name("commands_apart.txt")
OURS = re.compile(r"^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:mpirun [^|]*|torchrun [^|]*)?(?:build/(?:dev|release)/)?trellis .+)$")
PROSE = re.compile(r"(?:\s{2,}#|\s{3,}| {2,}(?=[a-z][a-z,'-]* [a-z])).*$")


def pages():
    return [name for name in map(str, tree.files(SOURCE)) if name.endswith(".md")
            and not name.startswith(("docs/tutorials/", "tests/", "CHANGELOG"))
            and not (name.startswith("docs/howto/") and "\n    $ " in (SOURCE / name).read_text())]


def commands(text):
    """What is indented and begins with the program, and whole cells of tables; lines that end in a backslash go on."""
    text = re.sub(r"\\\n\s*", "", text)
    for line in text.splitlines():
        for cell in re.findall(r"\| `(trellis [^`]+)` (?=\|)", line):
            yield cell
        found = line.startswith("    ") and OURS.match(line.strip())
        if found:
            yield PROSE.sub("", found[1]).replace("build/release/", "").replace("build/dev/", "").rstrip()


def apart():
    """By command: why it is not run here, or None and the status that it ends with."""
    table = {}
    for line in APART.read_text().splitlines():
        if line and not line.startswith("#"):
            command, _, why = line.partition("  |  ")
            table[command.strip()] = why.strip()
    return table


class Folder:
    """A folder in which a page's commands run: the tree's files are there, and what is written stays there."""

    def __init__(self, program):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="commands"))
        for entry in SOURCE.iterdir():
            if entry.name not in ("build", ".git"):
                (self.place / entry.name).symlink_to(entry)
        binaries = self.place / "build" / "bin"
        binaries.mkdir(parents=True)
        (binaries / "trellis").symlink_to(program)
        self.environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "HOME": str(self.place)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place, ignore_errors=True)

    def run(self, command, seconds):
        """Status, what was printed, and how long it took; status 124: it took longer."""
        began = time.monotonic()
        with tempfile.TemporaryFile("w+") as said:
            ran = subprocess.Popen(["bash", "-c", command], cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = ran.wait(seconds)
            except subprocess.TimeoutExpired:
                status = 124
                os.killpg(ran.pid, signal.SIGKILL)
                ran.wait()
            said.seek(0)
            return status, said.read(), time.monotonic() - began


def failures(page, program, wanted=None, seconds=600, tell=print):
    """Of the page's commands (or those in `wanted`): those that failed, with what they said."""
    known, failed = apart(), []
    with Folder(program) as folder:
        for command in commands((SOURCE / page).read_text()):
            if wanted is not None and command not in wanted:
                continue
            why = known.get(command, "")
            expected = int(why.split()[1].rstrip(":,")) if why.startswith("status ") else 0
            if why and not why.startswith("status "):
                tell(f"apart     {page}: {command}  ({why})")
                continue
            status, said, took = folder.run(command, seconds)
            tell(f"{'ok' if status == expected else f'status {status}':9} {took:6.1f} s  {page}: {command}")
            if status != expected:
                failed.append((page, command, status, said[-2000:]))
    return failed


def main(words):
    failed = []
    for page in words or pages():
        failed += failures(page, pathlib.Path(os.environ["TRELLIS"]).resolve(), tell=lambda line: print(line, flush=True))
    for page, command, status, said in failed:
        print(f"\n{page}: {command}: status {status}\n{said}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
