"""Does in a root folder what `docker build` would in an image: image.py CONTEXT ROOT

CONTEXT has the Dockerfile. Its COPY and RUN lines are done in ROOT, by chroot; what a container would start is printed."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
               "DEBIAN_FRONTEND": "noninteractive"}


def lines(text):
    """The instructions and what follows them, without comments; lines that end in a backslash go on."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    for line in re.sub(r"\\\n", "", text).splitlines():
        if line.strip():
            yield line.split(None, 1)


def main(context, root):
    started = []
    for instruction, rest in lines((context / "Dockerfile").read_text()):
        if instruction == "COPY":
            *sources, target = rest.split()
            found = [path for source in sources for path in context.glob(source)]
            if not found:
                sys.exit(f"{context}: no {' '.join(sources)}")
            for path in found:
                shutil.copy(path, root / target.lstrip("/"))
        elif instruction == "RUN":
            done = subprocess.run(["chroot", root, "/bin/sh", "-c", rest], env=ENVIRONMENT, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"RUN {rest}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        elif instruction == "ENTRYPOINT":
            started = json.loads(rest)
        elif instruction not in ("FROM", "CMD"):
            sys.exit(f"Dockerfile: {instruction}: expected FROM, COPY, RUN, ENTRYPOINT or CMD")
    print(*started)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
