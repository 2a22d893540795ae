# SPDX-License-Identifier: MIT
"""Which documents there are, and in which order. Only docs/README.md says so.

Each item of its list is a group, named by its bold beginning. The documents of a group are the documents that
the item names, in that order. A document in docs/ or at the root that docs/README.md does not name comes last,
and tests/docs/site/test_links complains.
"""
import os
import pathlib
import re

NAMED = re.compile(r"\]\(([\w./-]+\.md)\)|`([\w.-]+\.md)`")
NOT_OURS = {"build", "var", "node_modules", "debian"}
MANUAL = {"Learn", "A file", "Redis"}  # the groups whose documents become manual pages


def groups(source):
    """Returns [(label, [path])] in the order of docs/README.md; the documents that it does not name come
    last."""
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
    """Returns the documents that docs/README.md does not name."""
    return [path for label, paths in groups(source) if label == "More" for path in paths]


def manual_pages(source):
    """Returns the documents that become manual pages of section 7."""
    return [
        path for label, paths in groups(source) if label in MANUAL for path in paths if path.name != "README.md"
    ]


def title_of(path):
    """Returns the first heading of a document."""
    found = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
    return found.group(1).replace("`", "") if found else path.stem


def markdown_files(source):
    """Yields every Markdown file that is ours."""
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(name for name in folders if name not in NOT_OURS and not name.startswith("."))
        yield from (pathlib.Path(folder, name) for name in sorted(files) if name.endswith(".md"))
