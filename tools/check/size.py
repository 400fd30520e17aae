"""Fails when a file, function or folder outgrows its limit: size.py ROOT

Files 400 lines, headers 120, functions 60; folders 26 sources. Exceptions to lines stand in size_exceptions.txt, each
with its reason."""
import ast
import collections

import cpp_functions
import tree

FILE_LINES, HEADER_LINES, FUNCTION_LINES = 400, 120, 60
FOLDER_FILES = 26
MEASURED = {".h", ".cpp", ".py", ".cmake", ".sh"}
EXCEPTIONS = "tools/check/size_exceptions.txt"


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def sizes_in(root, path):
    """(what, its lines, its limit) of the file and of each function in it; of two functions of a name, the longer."""
    text = (root / path).read_text()
    yield str(path), len(text.splitlines()), HEADER_LINES if path.suffix == ".h" else FILE_LINES
    find = {".py": python_functions, ".h": cpp_functions.functions, ".cpp": cpp_functions.functions}.get(path.suffix)
    longest = {}
    for name, lines in find(text) if find else []:
        longest[name] = max(lines, longest.get(name, 0))
    for name, lines in longest.items():
        yield f"{path}:{name}", lines, FUNCTION_LINES


def read_exceptions(root):
    """({what: most lines}, complaints about the file of exceptions itself)"""
    allowed, complaints = {}, []
    lines = (root / EXCEPTIONS).read_text().splitlines() if (root / EXCEPTIONS).exists() else []
    for number, line in enumerate(lines, 1):
        words = line.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 3 or not words[1].isdigit():
            complaints.append(f"{EXCEPTIONS}:{number}: expected a path, a number of lines and a reason")
        else:
            allowed[words[0]] = int(words[1])
    return allowed, complaints


def check(root, paths):
    allowed, complaints = read_exceptions(root)
    for path in paths:
        for what, lines, limit in sizes_in(root, path):
            exception = allowed.pop(what, None)
            if exception is not None and lines <= limit:
                complaints.append(f"{EXCEPTIONS}: {what} has {lines} lines and needs no exception")
            elif lines > (exception or limit):
                complaints.append(f"{what}: {lines} lines, the limit is {exception or limit}")
    complaints += [f"{EXCEPTIONS}: there is no {what}" for what in allowed]
    complaints += [f"{folder}: {files} sources, the limit is {FOLDER_FILES}: give some a folder of their own"
                   for folder, files in collections.Counter(path.parent for path in paths).items()
                   if files > FOLDER_FILES]
    return complaints


if __name__ == "__main__":
    root = tree.root_argument()
    paths = [path for path in tree.files(root) if path.suffix in MEASURED]
    tree.finish("size", check(root, paths), len(paths))
