"""Puts sources into groups that compile as one: unity.py MOST SOURCE..., prints a group a line, its sources apart by ;

What a source keeps to itself (an anonymous namespace, static, a macro, an alias) must not mean something else in another
source of its group. So no such name of one occurs in another, or is declared by a header that the other includes, unless
both are aliases of the same words. A source that replaces operator new stays alone: others would inline its code.
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "check"))
import cpp_functions  # noqa: E402

WORD = re.compile(r"(?:(?:\.|->|::)\s*)?[A-Za-z_]\w*")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
PRIVATE = re.compile(r"(?:template\s*<[^{(]*>\s*)?(?:static|using|namespace|constexpr|const)\b")
ALIAS = re.compile(r"namespace\s+(\w+)\s*=|using\s+[\w:]*::(\w+)$")
TYPE = re.compile(r"(?:struct|class|enum(?:\s+class)?|union)\s+(\w+)|using\s+(\w+)\s*=")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
NAMESPACE = re.compile(r"(?:namespace(\s+[\w:]+)?|extern)\s*$")
REPLACED = re.compile(r"^void\s*\*?\s*operator (?:new|delete)", re.MULTILINE)  # for the whole program
OPENS_FILE_SCOPE = re.compile(r"using\s+namespace\s+(?!.*literals$)")


def name_in(statement):
    """The name that a declaration introduces and, where another source may say the same, its words."""
    statement = re.sub(r"^template\s*<.*?>\s*(?=[\w\[])", "", statement, flags=re.DOTALL)
    if alias := ALIAS.match(statement):
        return alias.group(1) or alias.group(2), " ".join(statement.split())
    if named := TYPE.match(statement):
        return named.group(1) or named.group(2), ""
    value = re.search(r"(?<![<>=!])=(?!=)", statement)
    head = statement[:value.start()] if value else statement
    if "(" in head:
        head = head[:head.index("(")]
    last = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:\{\})?\s*$", head)
    return (last.group(1), "") if last and not last.group(1).isupper() else None  # TEST(...) declares nothing to us


def statements(text):
    """Each declaration of a namespace, bodies as {}, and whether an anonymous namespace holds it."""
    inside, statement = [], ""  # the open braces: "anonymous", "namespace" or "body"
    for char in cpp_functions.blanked(text):
        if char == "{":
            head = statement.strip()
            namespace = "body" not in inside and NAMESPACE.search(head)
            if namespace:
                inside.append("namespace" if namespace[1] or head.startswith("extern") else "anonymous")
                statement = ""
            else:
                inside.append("body")
        elif char == "}" and inside:
            closed = inside.pop()
            if closed != "body":
                statement = ""
            elif "body" not in inside:
                statement += "{}"
                head = statement.split("{")[0]
                if "(" in head and "=" not in head.split("(")[0] and not TYPE.match(head.strip()):
                    yield statement.strip(), "anonymous" in inside  # a function; else it goes on to a semicolon
                    statement = ""
        elif "body" not in inside:
            if char == ";":
                yield statement.strip(), "anonymous" in inside
                statement = ""
            else:
                statement += char


def read(path):
    """The text, and what it includes of the tree."""
    text = pathlib.Path(path).read_text()
    return text, {ROOT / name for name in INCLUDE.findall(text) if (ROOT / name).is_file()}


@functools.cache
def declared_by(header):
    text, includes = read(header)
    return {found[0] for said, _ in statements(text) if (found := name_in(said))}, includes


def declared_above(includes):
    names, seen, left = set(), set(), list(includes)
    while left:
        header = left.pop()
        if header not in seen:
            seen.add(header)
            declared, further = declared_by(header)
            names |= declared
            left += further
    return names


class Source:
    def __init__(self, path):
        text, includes = read(path)
        self.path = path
        self.kept = {name: "" for name in MACRO.findall(text)}  # and, of aliases, the words
        self.alone = REPLACED.search(text) is not None
        self.opened = set()
        for said, anonymous in statements(text):
            if OPENS_FILE_SCOPE.match(said):
                self.opened.add(said)
            elif (anonymous or PRIVATE.match(said)) and (found := name_in(said)):
                self.kept[found[0]] = found[1]
        self.words = {word for word in WORD.findall(cpp_functions.blanked(text)) if word[0] not in ".-:"}
        self.above = declared_above(includes)

    def takes_for_another(self, name, words):
        return name in self.words and not (words and self.kept.get(name) == words) or not words and name in self.above

    def bears(self, other):
        return not (self.alone or other.alone) and self.opened == other.opened and not any(
            two.takes_for_another(name, words)
            for one, two in ((self, other), (other, self)) for name, words in one.kept.items())


def groups_of(sources, most):
    groups = []
    for source in sources:
        fits = (group for group in groups if len(group) < most and all(source.bears(one) for one in group))
        group = next(fits, None)
        if group is None:
            groups.append(group := [])
        group.append(source)
    return groups


if __name__ == "__main__":
    for group in groups_of([Source(path) for path in sys.argv[2:]], int(sys.argv[1])):
        print(";".join(source.path for source in group))
