"""Layers and rooms of src/: which file stands in which folder, what it includes, and what the pages of folders allow.

A layer is a folder of src/, a room a folder in a layer or in a room. The README.md of each is its page, and has one paragraph that begins with
"May include:" and names, in backticks, what its files may include:

* a layer's page names layers;
* a room's page names rooms of its layer by their path in it (`line`, `formats/msccl`). The name of the layer (`sim`), or of the room around it, stands
  for the headers in that folder itself.

Sources in a folder may include all rooms in it: they join what the rooms hold. Headers in it are what its rooms have in common, or entrances, so that
they include only rooms that the page of the folder names ("Headers here include:"). Tests may include anything of their layer; `testing/` is what only
tests include, also those of later layers."""
import dataclasses
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class File:
    path: str  # below src/: "sim/line/links.cc"
    lines: int
    includes: tuple  # (line, what stands between the quotes), in order

    @property
    def folder(self):
        return self.path.rpartition("/")[0]

    @property
    def layer(self):
        return self.path.partition("/")[0]

    @property
    def is_header(self):
        return self.path.endswith(".h")

    @property
    def is_test(self):
        return self.path.endswith("_test.cc") or "/testing/" in self.path


def text_of(path):
    """A file of the project as text. Ends the program where it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        sys.exit(f"{path.relative_to(ROOT)}:{line}: not UTF-8")


def read(path):
    text = text_of(path)
    includes = tuple((text.count("\n", 0, match.start()) + 1, match[1]) for match in INCLUDE.finditer(text))
    return File(str(path.relative_to(SRC)), text.count("\n"), includes)


def files():
    """All sources and headers, by path."""
    paths = sorted(path for path in SRC.rglob("*") if path.suffix in (".h", ".cc"))
    return {file.path: file for file in map(read, paths)}


def folders(all_files):
    """All folders that hold files, and those around them, by path; parents come first."""
    found = set()
    for file in all_files.values():
        folder = file.folder
        while folder:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)


class Page:
    """What the README.md of a folder allows."""

    def __init__(self, folder):
        self.path = SRC / folder / "README.md"
        self.text = text_of(self.path) if self.path.is_file() else None
        self.may_include = self.names("May include:")  # None: the page does not say
        self.headers_include = self.names("Headers here include:") or []

    def names(self, opening):
        if self.text is None:
            return None
        match = re.search(rf"^(?:\* )?{opening}(.*?)(?:\n\n|\n\* |\Z)", self.text, re.MULTILINE | re.DOTALL)
        return re.findall(r"`([^`]+)`", match[1].partition(". ")[0]) if match else None


def in_layer(folder, layer):
    """The name of a folder on the pages of its layer: "formats/msccl"; the layer's own for itself."""
    return folder[len(layer) + 1:] if folder != layer else layer


def uses(all_files):
    """{(from folder, to folder): [(file, line, included file)]} of what is no test, where the two differ."""
    found = {}
    for file in all_files.values():
        if file.is_test:
            continue
        for line, name in file.includes:
            other = all_files.get(name)
            if other is not None and other.folder != file.folder:
                found.setdefault((file.folder, other.folder), []).append((file, line, other))
    return found


def joins(file, other):
    """Whether a source includes a room of its own folder, which it may."""
    return not file.is_header and other.folder.startswith(file.folder + "/")
