# SPDX-License-Identifier: MIT
"""docs/workers.md says which test shows which promise."""
import os
import pathlib
import re

from harness import ROOT


def test_the_document_names_tests_that_are_there():
    with open(os.path.join(ROOT, "docs", "workers.md"), encoding="utf-8") as file:
        named = set(re.findall(r"`(test_\w+(?:\.py)?)`", file.read()))
    there = set()
    for path in pathlib.Path(ROOT, "tests", "clients").glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        there |= {path.name, *re.findall(r"^(?:    )?def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 30 and named <= there, named - there
