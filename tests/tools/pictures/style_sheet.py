"""Which rules of a picture's or page's style sheets hold for an element: tags, classes, ids, ancestors; no pseudo-class."""
import html.parser
import re

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
COMPOUND = re.compile(r"([\w-]+|\*)?((?:[#.][\w-]+|:[\w-]+(?:\([^)]*\))?|\[[^]]*\])*)$")


class Element:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children, self.text = tag, dict(attributes), parent, [], ""
        self.classes = (self.attributes.get("class") or "").split()

    def all(self):
        yield self
        for child in self.children:
            yield from child.all()

    def ancestors(self):
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


class Document(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.root = self.at = Element("", {}, None)
        self.sheets = []
        self.feed(text)
        self.rules = [rule for sheet in self.sheets for rule in rules_of(sheet)]

    def handle_starttag(self, tag, attributes):
        self.at.children.append(Element(tag, attributes, self.at))
        if tag not in VOID:
            self.at = self.at.children[-1]

    def handle_startendtag(self, tag, attributes):
        self.at.children.append(Element(tag, attributes, self.at))

    def handle_endtag(self, tag):
        if any(above.tag == tag for above in [self.at, *self.at.ancestors()]):
            while self.at.tag != tag:
                self.at = self.at.parent
            self.at = self.at.parent

    def handle_data(self, data):
        self.at.text += data
        if self.at.tag == "style":
            self.sheets.append(data)

    def value(self, element, name, dark=False):
        """Of an inherited property such as fill, as the cascade has it; None: nobody says."""
        for one in [element, *element.ancestors()]:
            found = own_value(self.rules, one, name, dark)
            if found not in (None, "inherit"):
                return found
        return None


def own_value(rules, element, name, dark):
    inline = declarations(element.attributes.get("style") or "")
    if name in inline:
        return inline[name]
    holding = [(weight(selector), place, said[name]) for place, (selector, said, is_dark) in enumerate(rules)
               if name in said and (dark or not is_dark) and matches(element, selector)]
    return max(holding)[2] if holding else element.attributes.get(name)


def rules_of(sheet):
    """Selector, what it says, and whether that is for dark screens only."""
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    found, at = [], 0
    while (opening := sheet.find("{", at)) >= 0:
        head, end = sheet[at:opening].strip(), opening + 1
        depth = 1
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(sheet[end], 0)
            end += 1
        body, at = sheet[opening + 1:end - 1], end
        if head.startswith("@media"):
            if re.search(r"prefers-color-scheme:\s*dark", head):
                found += [(selector, said, True) for selector, said, _ in rules_of(body)]
        elif not head.startswith("@"):
            found += [(selector.strip(), declarations(body), False) for selector in head.split(",")]
    return found


def declarations(body):
    pairs = [part.split(":", 1) for part in body.split(";") if ":" in part]
    return {name.strip(): value.strip() for name, value in pairs}


def weight(selector):
    return (selector.count("#"), len(re.findall(r"[.:\[]", selector)), len(re.findall(r"(?:^|[\s>])[a-z]", selector)))


def matches(element, selector):
    words = re.sub(r"\s*>\s*", " > ", selector).split()
    return follows(element, words)


def follows(element, words):
    """The last word holds for the element, and those before it for its ancestors."""
    if not one_matches(element, words[-1]):
        return False
    rest = words[:-1]
    if not rest:
        return True
    if rest[-1] == ">":
        return element.parent is not None and follows(element.parent, rest[:-1])
    return any(follows(above, rest) for above in element.ancestors())


def one_matches(element, word):
    split = COMPOUND.match(word)
    if not split or re.search(r"[:\[]", word.replace(":root", "")):
        return False
    tag, more = split.group(1), re.findall(r"([#.])([\w-]+)", split.group(2))
    if tag not in (None, "*", element.tag):
        return False
    return all(name in element.classes if kind == "." else element.attributes.get("id") == name for kind, name in more)
