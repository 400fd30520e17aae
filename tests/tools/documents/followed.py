"""A page of docs/ as a reader would follow it: files written, commands run in order, what they print compared. `...` in
what a page shows stands for anything; commands that end in `# fails` must."""
import re
import subprocess


def steps(text):
    """In order: ("file", name, text) for each block after a line "`name`:", and ("run", command, lines shown)."""
    for block in re.finditer(r"(?:^`([\w.]+)`:\n\n)?((?:^    .*\n|^\n(?=    ))+)", text, re.M):
        body = "".join(line[4:] or "\n" for line in block[2].splitlines(True))
        file, prompt, commands = body.partition("$ ") if body.startswith("$ ") else body.partition("\n$ ")
        if block[1]:
            yield "file", block[1], file.strip("\n") + "\n"
        for command in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", prompt.strip("\n") + commands, re.M):
            yield "run", command[1], command[2].rstrip("\n").splitlines()


def pattern(lines):
    """What is printed must match it as a whole; lines without any text are not compared."""
    whole = ""
    for line in lines:
        whole += r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.rstrip().split("..."))) + r" *\n"
    return whole


def follow(test, page, folder, environment):
    """Of a unittest.TestCase: what a step does not do is its failure. Returns how many commands ran."""
    folder.mkdir()
    ran = 0
    for kind, what, shown in steps(page.read_text()):
        with test.subTest(page=page.name, step=what):
            if kind == "file":
                (folder / what).write_text(shown)
                continue
            said = subprocess.run(["bash", "-c", what], cwd=folder, env=environment, capture_output=True, text=True,
                                  timeout=300)
            everything = said.stdout + said.stderr
            test.assertEqual(said.returncode != 0, what.endswith("# fails"), everything)
            if shown:
                test.assertRegex(everything, rf"\A{pattern(shown)}\Z")
            ran += 1
    return ran
