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


def unclosed(code, start, at):
    """Whether a ( is open, as inside for (;;)."""
    return code.count("(", start, at) > code.count(")", start, at)
