"""Gathers the pages of the tree for mkdocs: site.py SOURCE TARGET [PROGRAM]

Every Markdown file goes to the same place below TARGET/pages, with the pictures and sources that pages link to, and
README.md becomes the first page; the reference is made from the sources (reference.py), that of the commands by
PROGRAM; TARGET/mkdocs.yml says in which order they are listed."""
import pathlib
import re
import shutil
import subprocess
import sys

import reference

ORDER = [("Start", ["README.md", "docs/program.md", "docs/library.md"]),
         ("Tutorials", "docs/tutorials/"),
         ("How to", "docs/howto/"),
         ("Simulate", ["docs/step.md", "docs/simulate.md", "sim/README.md", "sim/machines/README.md", "sim/core/README.md",
                       "sim/published/README.md", "docs/nki_faster.md", "docs/nki_order.md", "python/trellis/nki/README.md"]),
         ("Collectives", ["schedule/README.md", "ccl/README.md", "ccl/api/README.md", "ccl/api/nccl/README.md",
                          "ccl/plan/README.md", "ccl/rendezvous/README.md", "ccl/transports/libfabric/README.md"]),
         ("Train and Python", ["docs/train.md", "train/README.md", "python/README.md"]),
         ("Reference", ["docs/environment.md", "docs/errors.md", "docs/glossary.md", "SECURITY.md", "CHANGELOG.md"]),
         ("The source", ["ARCHITECTURE.md", "docs/tree.md", "HACKING.md", "CONTRIBUTING.md", "tests/README.md"])]

HEAD = """site_name: Trellis
site_description: Collectives as values, written down, proved, priced, run
docs_dir: pages
site_dir: site
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, content.code.copy]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
markdown_extensions: [tables, toc, attr_list]
plugins: [search]
validation:
  links: {not_found: warn, anchors: warn, unrecognized_links: warn}
nav:
"""


def title_of(page):
    return re.search(r"^# (.*)", page.read_text(), re.M)[1].replace(":", ",")


def without_folders(text, page):
    """Links to folders: a site has none, so they lead to what the folder's README.md says, or are text."""
    def led(found):
        if "://" in found[2] or not (page.parent / found[2]).is_dir():
            return found[0]
        readme = page.parent / found[2] / "README.md"
        return f"[{found[1]}]({found[2].rstrip('/')}/README.md)" if readme.exists() else found[1]
    return re.sub(r"\[([^\]]*)\]\(([^)#]+)\)", led, text)


def main(source, target, program=None):
    tracked = subprocess.run(["git", "-C", str(source), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
                             capture_output=True, text=True, check=True).stdout.split("\0")
    pages = {name for name in tracked if name.endswith(".md") and (not name.startswith("tests/") or name == "tests/README.md")}
    shutil.rmtree(target, ignore_errors=True)
    wanted = set(pages)
    for name in pages:
        for link in re.findall(r"\]\(([^)#]+)", (source / name).read_text()):
            path = (source / name).parent / link
            if "://" not in link and path.is_file():
                wanted.add(str(path.resolve().relative_to(source)))
    for name in wanted:
        place = target / "pages" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            place.write_text(without_folders((source / name).read_text(), source / name))
        else:
            shutil.copy(source / name, place)
    reference.main(source, target / "pages" / "reference", program)
    made = sorted((target / "pages" / "reference").glob("*.md"))
    nav = ""
    for part, names in ORDER:
        if isinstance(names, str):
            names = sorted((name for name in pages if name.startswith(names)), key=lambda n: (not n.endswith("README.md"), n))
        nav += f"  - {part}:\n" + "".join(f"      - \"{title_of(source / name)}\": {name}\n" for name in names if name in pages)
        if part == "Reference":
            nav += "".join(f"      - \"{title_of(page)}\": reference/{page.name}\n" for page in made)
    folders = tuple(names for _, names in ORDER if isinstance(names, str))
    rest = sorted(pages - {name for _, names in ORDER for name in (names if isinstance(names, list) else [])}
                  - {name for name in pages if name.startswith(folders)})
    nav += "  - Rooms:\n" + "".join(f"      - \"{title_of(source / name)}\": {name}\n" for name in rest)
    (target / "mkdocs.yml").write_text(HEAD + nav)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])
