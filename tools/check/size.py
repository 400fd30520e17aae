"""Fails when a file, function, folder or class outgrows its limit: size.py ROOT

Files 400 lines, headers 120, functions 60; folders 26 sources; the members of a class stand in one source. Exceptions to
lines and classes stand in size_exceptions.txt, each with its reason."""
import ast
import collections

import cpp_functions
import tree

FILE_LINES, HEADER_LINES, FUNCTION_LINES = 400, 120, 60
FOLDER_FILES = 26
NO_PRODUCT = {"tests", "bench", "examples"}
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


def classes_in(root, paths):
    """(room/class, the sources that define members of it, 1) of each class of the product."""
    sources = collections.defaultdict(set)
    for path in paths:
        if path.suffix == ".cpp" and path.parts[0] not in NO_PRODUCT:
            for name in cpp_functions.classes_with_members((root / path).read_text()):
                sources[f"{path.parts[0]}/{name}"].add(path)
    for name, found in sorted(sources.items()):
        yield name, len(found), 1


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
    measured = [(*size, "lines") for path in paths for size in sizes_in(root, path)]
    measured += [(*size, "sources with its members") for size in classes_in(root, paths)]
    for what, size, limit, unit in measured:
        exception = allowed.pop(what, None)
        if exception is not None and size <= limit:
            complaints.append(f"{EXCEPTIONS}: {what} has {size} {unit} and needs no exception")
        elif size > (exception or limit):
            complaints.append(f"{what}: {size} {unit}, the limit is {exception or limit}")
    complaints += [f"{EXCEPTIONS}: there is no {what}" for what in allowed]
    complaints += [f"{folder}: {files} sources, the limit is {FOLDER_FILES}: give some a folder of their own"
                   for folder, files in collections.Counter(path.parent for path in paths).items()
                   if files > FOLDER_FILES]
    return complaints


if __name__ == "__main__":
    root = tree.root_argument()
    paths = [path for path in tree.files(root) if path.suffix in MEASURED]
    tree.finish("size", check(root, paths), len(paths))
