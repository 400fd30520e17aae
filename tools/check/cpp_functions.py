"""Finds the functions of a C++ file and their lengths, by braces alone: no compiler, and good enough to count lines."""
import re

NOISE = re.compile(r'''
    //[^\n]*
  | /\*.*?\*/
  | R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
  | "(?:\\.|[^"\\\n])*"
  | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'
  | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*
''', re.VERBOSE | re.DOTALL | re.MULTILINE)

# A block that opens with one of these contains functions, and is not a function.
HOLDS = re.compile(r"^(?:export\s+)?(?:template\s*<.*>\s*)?(?:inline\s+)?(?:typedef\s+)?"
                   r"(?:namespace|class|struct|union|enum)\b", re.DOTALL)
NAMESPACE = re.compile(r"\bnamespace(?:\s+[\w:]+)?\s*$|\bextern\s*$")
ARGUMENTS = re.compile(r"<[^<>]*>")
MEMBER = re.compile(r"(?<![\w:])(\w+(?:::\w+)*)::(?:~?\w+|operator\W*)\s*$")
ACCESS = re.compile(r"(?:\s*(?:public|private|protected)\s*:(?!:))*\s*")


def blanked(text):
    """The text with comments, literals and preprocessor lines emptied, its line ends kept."""
    return NOISE.sub(lambda noise: re.sub(r"[^\n]", " ", noise.group()), text)


def name_of(head):
    names = re.findall(r"([~\w]+)\s*(?:<[^<>]*>)?\s*\(", head)
    if "operator" in names or re.search(r"\boperator\b", head):
        return "operator"
    if re.search(r"\[[^\[\]]*\]\s*(?:\([^()]*\))?[^()]*$", head):
        return "lambda"
    return names[0] if names else "?"


def is_function(head):
    return "(" in head and not HOLDS.match(head) and not head.endswith("=")


def functions(text):
    """Yields (name, lines) for each outermost function, from the first line of its head to its closing brace."""
    code = blanked(text)
    stack = []  # (head, where it starts, whether it is a function)
    start, inside = 0, 0
    for at, char in enumerate(code):
        if char == "{":
            first = ACCESS.match(code, start, at).end()
            head = code[first:at].strip()
            function = inside == 0 and is_function(head)
            stack.append((head, first, start, function))
            inside += function
            start = at + 1
        elif char == "}" and stack:
            head, first, before, function = stack.pop()
            inside -= function
            follows = code[at + 1:].lstrip()[:1]
            member = function and follows in {",", "{"}  # a(1), b_{2} {: the head goes on behind an initialiser
            if function and not member:
                yield name_of(head), code.count("\n", first, at) + 1
            start = before if member else at + 1
        elif char == ";" and not unclosed(code, start, at):
            start = at + 1


def classes_with_members(text):
    """The classes of a header of which the source defines functions: "A" of A::f(), "A::B" of A::B::f()."""
    code = blanked(text)
    inside, start = [], 0  # of each open brace, whether it is a namespace's
    for at, char in enumerate(code):
        if char == "{":
            head = code[start:at].strip()
            inside.append(NAMESPACE.search(head) is not None)
            while (plain := ARGUMENTS.sub("", head)) != head:
                head = plain
            if is_function(head) and all(inside[:-1]) and (found := MEMBER.search(head.split("(")[0])):
                if not re.search(rf"\b(?:class|struct)\s+{found[1].split('::')[-1]}\b", code):
                    yield found[1]
        elif char == "}" and inside:
            inside.pop()
        if char in "{}" or char == ";" and not unclosed(code, start, at):
            start = at + 1


def unclosed(code, start, at):
    """Whether a ( is open, as inside for (;;)."""
    return code.count("(", start, at) > code.count(")", start, at)
