# SPDX-License-Identifier: MIT
"""Which documents there are, and in which order: docs/README.md says so, and no other place.

Each item of its list is a group, named by its bold beginning; the documents are those that it names, in that
order. What lies in docs/ or at the root and is not named there comes last, and tests/docs/site/test_links
complains.
"""
import os
import pathlib
import re

NAMED = re.compile(r"\]\(([\w./-]+\.md)\)|`([\w.-]+\.md)`")
NOT_OURS = {"build", "var", "node_modules", "debian"}
MANUAL = {"Learn", "Redis"}  # the groups whose documents become manual pages


def groups(source):
    """[(label, [path])] in the order of docs/README.md; last what is not named there."""
    docs = source / "docs"
    out, seen = [], {docs / "README.md", source / "README.md"}
    for item in re.split(r"^- ", (docs / "README.md").read_text(), flags=re.MULTILINE)[1:]:
        label = re.match(r"\*\*(.*?):?\*\*", item)
        paths = [source / os.path.normpath(pathlib.Path("docs", a or b)) for a, b in NAMED.findall(item)]
        paths = [path for path in dict.fromkeys(paths) if path.exists() and path not in seen]
        seen |= set(paths)
        if paths:
            out.append((label.group(1) if label else "", paths))
    rest = [path for path in [*sorted(docs.glob("*.md")), *sorted(source.glob("*.md"))] if path not in seen]
    return out + ([("More", rest)] if rest else [])


def unnamed(source):
    """Documents that docs/README.md forgets."""
    return [path for label, paths in groups(source) if label == "More" for path in paths]


def manual_pages(source):
    """The documents that become pages of section 7."""
    return [
        path for label, paths in groups(source) if label in MANUAL for path in paths if path.name != "README.md"
    ]


def title_of(path):
    """The first heading of a document."""
    found = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
    return found.group(1).replace("`", "") if found else path.stem


def markdown_files(source):
    """Every Markdown file that is ours."""
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name not in NOT_OURS and not name.startswith("."))
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))
