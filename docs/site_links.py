"""Lets one text serve a forge and the site: pages link to files beside `docs/`, which the site shows as pages too.

MkDocs calls `on_files` and `on_page_markdown`. A link that leads nowhere is left as it is: the strict build finds it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
TEXTS = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
CODE = ("examples", "benchmarks")
SHOWN = {".py": "python", ".toml": "toml", ".sh": "sh", ".json": "json"}
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.M | re.S)


def page_of(path: str) -> str | None:
    """Where the site has a file or folder of the repository: the name of its page; None if it has none."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in TEXTS:
        return TEXTS[path]
    here = ROOT / path
    if path.split("/")[0] not in CODE or not here.exists():
        return None
    return f"{path}/index.md" if here.is_dir() else f"{path}.md"


def moved(markdown: str, origin: str, page: str) -> str:
    """A text of the repository with its links as they are on the site.

    Args:
        markdown: The text.
        origin: The file it stands in, from the root of the repository.
        page: Its page on the site.
    """

    def other(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        found = page_of(target)
        if found is None:
            return match[0]
        return f"{match[1]}{posixpath.relpath(found, posixpath.dirname(page) or '.')}{match[3]}"

    out, end = [], 0
    for fence in FENCE.finditer(markdown):  # code is no text: what looks like a link in it is none
        out += [LINK.sub(other, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*out, LINK.sub(other, markdown[end:])])


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of what stands beside `docs/`."""
    for origin, page in TEXTS.items():
        files.append(File.generated(config, page, content=moved((ROOT / origin).read_text(), origin, page)))
    for path in sorted(linked()):
        page = page_of(path)
        if page is not None:
            files.append(File.generated(config, page, content=shown(path, page)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Move the links of a page of `docs/`."""
    if page.file.generated_by:
        return markdown
    return moved(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def linked() -> set[str]:
    """Files and folders beside `docs/` that some page links to, and what stands in these folders."""
    found: set[str] = set()
    texts = [ROOT / name for name in TEXTS] + sorted((ROOT / "docs").rglob("*.md"))
    for text in texts:
        origin = text.relative_to(ROOT).as_posix()
        for match in LINK.finditer(FENCE.sub("", text.read_text())):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
            if path.split("/")[0] in CODE and (ROOT / path).exists():
                found.add(path)
                if (ROOT / path).is_dir():
                    found |= {f"{path}/{name}" for name in names_in(ROOT / path)}
    return found


def names_in(folder: Path) -> list[str]:
    """Its files that can be shown."""
    return sorted(one.name for one in folder.iterdir() if one.is_file() and one.suffix in SHOWN)


def shown(path: str, page: str) -> str:
    """The page of a file, or of a folder with what stands in it."""
    here = ROOT / path
    if here.is_dir():
        lines = [f"- [{name}]({name}.md)" for name in names_in(here)]
        return "\n".join([f"# {path}/", "", *lines, ""])
    return f"# {path}\n\n`````{SHOWN.get(here.suffix, 'text')}\n{here.read_text()}\n`````\n"
