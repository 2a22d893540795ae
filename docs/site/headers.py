# SPDX-License-Identifier: MIT
"""Reads public headers: the declarations, and the comments that document them.

This is no C parser. The headers keep to one style, and this module reads that style:

- A comment stands right above the declaration that it documents.
- A declaration that follows another declaration without an empty line, and without a comment of its own, shares
  the comment above.
- Sections are ruled comments.

tests/docs/site/test_reference fails on a declaration without a comment, and on an exported symbol that this
module does not find.
"""
import dataclasses
import pathlib
import re

LABELS = ("Requires", "Returns", "Cost", "Threads", "In callback", "Ownership", "Source", "Example")
LABEL = re.compile(r"(?:(?<=\s)|^)(" + "|".join(LABELS) + r"):(?: |\n)")
SECTION = re.compile(r"^-{3,} (.+?) -{3,}$", re.DOTALL)
SPECIAL = re.compile(r"template\s*<.*?>\s*(struct|class)\s+[\w:]+<", re.DOTALL)  # a specialization
ERROR_ROW = re.compile(r'X\((\w+), (-?\d+), "([^"]*)"\)')


@dataclasses.dataclass
class Entry:
    """A declaration and its comment, or several declarations that share a comment."""

    kind: str  # function, callback, struct, enum, constant, macro; in C++ also class, alias
    names: list
    declarations: list
    doc: str
    line: int
    members: list = dataclasses.field(default_factory=list)  # (declaration, comment)
    inner: list = dataclasses.field(default_factory=list)  # entries of a class
    owner: str = ""  # the class of a member


@dataclasses.dataclass
class Header:
    """A header: the text of its head, then its sections, each a title and its entries."""

    path: pathlib.Path
    brief: str
    head: str
    sections: list

    @property
    def name(self):
        return "tickwheel/" + self.path.name

    def entries(self):
        for _, entries in self.sections:
            for entry in entries:
                yield entry
                yield from entry.inner


def comment_text(comment):
    """Returns the words of a comment, without its stars, with its indentation."""
    if comment.startswith("//"):
        return "\n".join(re.sub(r"^\s*///?<? ?", "", line) for line in comment.splitlines()).strip("\n")
    lines = re.sub(r"^/\*+<? ?|\s*\*+/$", "", comment).splitlines()
    return "\n".join(
        re.sub(r"^\s*\* ?", "", line).rstrip() if i else line.rstrip() for i, line in enumerate(lines)
    ).strip("\n")


def skip_string(text, at):
    """Returns the position after the string or character literal that begins at `at`."""
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def comment_end(text, at):
    """Returns the position after the comment that begins at `at`, or `at` if no comment begins there."""
    if text.startswith("/*", at):
        return text.index("*/", at) + 2
    if text.startswith("//", at):
        return text.find("\n", at) % (len(text) + 1)
    return at


def closing(text, at):
    """Returns the position after the bracket that closes the bracket at `at`."""
    depth = 0
    while at < len(text):
        if comment_end(text, at) != at:
            at = comment_end(text, at)
            continue
        if text[at] in "\"'" and not (text[at] == "'" and text[at - 1].isdigit()):
            at = skip_string(text, at)
            continue
        depth += (text[at] in "({[") - (text[at] in ")}]")
        at += 1
        if depth == 0:
            return at
    raise ValueError("a bracket is not closed")


def directive_end(text, at):
    """Returns the position of the line end that ends a preprocessor directive."""
    while True:
        end = text.find("\n", at) % (len(text) + 1)
        if not text[:end].endswith("\\"):
            return end
        at = end + 1


def without_comments(text):
    """Returns the code alone, with its spaces unchanged."""
    out, at = [], 0
    while at < len(text):
        end = comment_end(text, at)
        if end == at:
            end = skip_string(text, at) if text[at] == '"' else at + 1
            out.append(text[at:end])
        at = end
    return "".join(out)


def tidy(code):
    """Returns a declaration without comments, empty lines and the indentation of its class."""
    code = re.sub(
        r"(?<=[)\w])\s+:\s+\w+\s*[({].*;$", ";", without_comments(code).strip(), flags=re.DOTALL
    )  # constructors
    lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    margins = [len(line) - len(line.lstrip()) for line in lines[1:]]
    if lines and lines[-1].strip().startswith("}"):
        margin = margins[-1] if margins else 0
    else:
        margin = 0
    return (
        "\n".join([lines[0]] + [line[min(margin, len(line) - len(line.lstrip())) :] for line in lines[1:]])
        if lines
        else ""
    )


def items_of(text):
    """Yields (kind, text, line, blank) for each part of a header's text.

    The kind is comment, trailing, directive, access or code. `blank` is true if an empty line stands before the
    part. Function bodies are left out; the body of a type is kept.
    """
    at, blank = 0, False
    while at < len(text):
        if text[at].isspace():
            end = re.compile(r"\s+").match(text, at).end()
            blank = blank or text.count("\n", at, end) > 1
            at = end
            continue
        start, line = at, text.count("\n", 0, at) + 1
        if text[at] == "#":
            at = directive_end(text, at)
            yield "directive", text[start:at], line, blank
        elif comment_end(text, at) != at:
            at = comment_end(text, at)
            follows = re.compile(r"\n[ \t]*//").match(text, at)
            while text.startswith("//", start) and follows:
                at = comment_end(text, follows.end() - 2)
                follows = re.compile(r"\n[ \t]*//").match(text, at)
            own_line = text[text.rfind("\n", 0, start) + 1 : start].strip() == ""
            yield "comment" if own_line else "trailing", text[start:at], line, blank
        elif re.compile(r"(public|private|protected):").match(text, at):
            at = text.index(":", at) + 1
            yield "access", text[start : at - 1], line, blank
        else:
            at, code = code_end(text, at)
            yield "code", code, line, blank
        blank = False


def code_end(text, start):
    """Returns the position where the declaration at `start` ends, and its text without the body of a
    function."""
    at = start
    while at < len(text):
        if comment_end(text, at) != at:
            at = comment_end(text, at)
        elif text[at] == ";":
            return at + 1, text[start : at + 1]
        elif text[at] in "([":
            at = closing(text, at)
        elif text[at] == "{":
            head = without_comments(text[start:at])
            end = closing(text, at)
            if re.match(r'\s*(extern "C"|(inline )?namespace\b)', head):
                return end, text[start:end]
            if is_function(head) and not re.search(r"[:,]\s*\w+\s*$", head):
                return end, text[start:at].rstrip() + ";"
            at = end
            if is_function(head):  # an initialiser list of a constructor; the body follows
                head_end = head.find(") :") if ") :" in head else head.find(")\n")
                rest = re.compile(r"\s*\{").match(text, at)
                if rest:
                    return closing(text, rest.end() - 1), head[: head_end + 1].rstrip() + ";"
        else:
            at += 1
    return at, text[start:at]


def is_function(head):
    """Returns whether the text before a brace is the head of a function, not of a type."""
    plain = re.sub(r"template\s*<[^{;]*?>\s*(?=(class|struct|enum|union)\b)", "", head.strip())
    return "(" in head and not re.match(r"(class|struct|enum|union|typedef)\b(?!.*\()", plain.replace(
        "\n", " "))


def names_of(code):
    """Returns (kind, names) of a declaration in C or C++; the name of a type comes without `struct`."""
    plain = re.sub(r"\s+", " ", without_comments(code)).strip()
    bare = re.sub(r"^(template ?<.*?> )(?=class|struct|using|\w)", "", plain)
    found = re.match(r"(struct|class|union|enum(?: class)?)\s+(?:\[\[\w+\]\] ?)?(\w+)?[^(;{]*([;{])", bare)
    if found and (found.group(3) == "{" or re.fullmatch(r"(struct|class|union) \w+;", bare)):
        kind = found.group(1).split()[0]
        if found.group(2) is None:
            return "constant", [re.match(r"\w+", name).group() for name, _ in members_of(code)]
        return kind, [found.group(2)]
    if bare.startswith("using "):
        found = re.match(r"using (\w+) =", bare)
        return ("alias", [found.group(1)]) if found else ("other", [])
    if bare.startswith("typedef "):
        found = re.search(r"(\w+) ?\(", bare) or re.search(r"(\w+);", bare)
        return "callback" if "(" in bare else "alias", [found.group(1)]
    found = re.search(
        r"(operator ?(?:\(\)|\[\]|[^\w\s(]+|bool|\w+)|~?\w+) ?\(",
        re.sub(r"(noexcept|__attribute__|explicit|alignas) ?\(.*?\)+ ?", "", bare),
    )
    if found:
        return "function", [found.group(1)]
    found = re.search(r"(\w+) ?(?:=|\{|;)", bare)
    return ("constant", [found.group(1)]) if found else ("other", [])


def members_of(code):
    """Returns [(declaration, comment)] of the members of a struct or the enumerators of an enum."""
    start = code.index("{") + 1
    body = code[start : closing(code, start - 1) - 1]
    enum = re.match(r"\s*(typedef )?enum\b", code) is not None
    members, comment, last, at, begin = [], "", None, 0, None
    while at < len(body):
        end = comment_end(body, at)
        if end != at:
            words = re.sub(r"\s+", " ", comment_text(body[at:end]))
            same_line = last is not None and "\n" not in body[last:at]
            if begin is not None and "\n" not in body[begin:at]:  # the last enumerator: it has no comma
                members.append((body[begin:at].strip(), words))
                begin, last = None, at
            elif same_line and begin is None:
                members[-1] = (members[-1][0], f"{members[-1][1]} {words}".strip())
                last = end
            else:
                comment = words
            at = end
        elif body[at] == "#":
            at = directive_end(body, at)
        elif body[at] == ("," if enum else ";") and begin is not None:
            members.append((re.sub(r"\s+", " ", body[begin:at].strip()), comment))
            comment, begin, last = "", None, at
            at += 1
        else:
            begin = at if begin is None and not body[at].isspace() and body[at] not in ",;" else begin
            at = closing(body, at) if body[at] in "({[" else at + 1
    if enum and begin is not None:
        members.append((re.sub(r"\s+", " ", body[begin:].strip()), comment))
    return [(name, words) for name, words in members if "_ERROR_TABLE(" not in name]


class Reader:
    """Collects the entries of a header, section by section."""

    def __init__(self, private, inside=False):
        self.sections = [("", [])]
        self.private = private
        self.inside = inside  # a class
        self.doc, self.last, self.last_line = "", None, 0

    def shares(self, entry, blank):
        """Returns whether an entry without a comment belongs to the entry before it.

        In a header it does if no empty line parts the two entries. In a class all members without a comment are
        listed together.
        """
        if entry.doc or self.last is None or entry.kind not in ("function", "macro", "callback", "alias"):
            return False
        if self.inside:
            return not self.last.doc and self.last.kind in ("function", "alias")
        return not blank and entry.kind == self.last.kind

    def add(self, entry, blank):
        if self.shares(entry, blank):
            self.last.names += entry.names
            self.last.declarations += entry.declarations
        else:
            self.sections[-1][1].append(entry)
            self.last = entry
        self.doc = ""

    def comment(self, text):
        words = comment_text(text)
        section = SECTION.match(words)
        if section:
            self.sections.append((section.group(1), []))
            self.doc, self.last = "", None
        else:
            self.doc = words

    def trailing(self, text):
        if self.last is not None and not self.last.doc:
            self.last.doc = comment_text(text)

    def macro(self, text, line, blank):
        found = re.match(r"#\s*define\s+(\w+)(\([^)]*\))?(.*)", text, re.DOTALL)
        ours = found and found.group(1).startswith("TICKWHEEL_") and not self.doc
        if not found or ours or self.private(found.group(1)) or not found.group(3).strip() and not self.doc:
            if found is None and not text.startswith("#undef"):
                self.doc = ""
            return
        name, arguments, value = found.group(1), found.group(2) or "", found.group(3).strip()
        trailing = re.search(r"/\*.*?\*/\s*$", value)
        doc = self.doc or (comment_text(trailing.group().strip()) if trailing else "")
        shown = f"#define {name}{arguments}"
        if "\n" not in value and not arguments:
            shown += " " + without_comments(value).strip()
        entry = Entry("macro", [name], [shown.strip()], doc, line)
        entry.members = [(f"{row[0]} = {row[1]}", row[2]) for row in ERROR_ROW.findall(value)]
        self.add(entry, blank)

    def code(self, text, line, blank):
        if SPECIAL.match(text):
            self.doc = ""
            return
        kind, names = names_of(text)
        if kind == "other" or not names or any(self.private(name) for name in names):
            self.doc = ""
            return
        entry = Entry(kind, names, [tidy(text)], self.doc, line)
        if kind in ("struct", "enum", "constant", "union") and "{" in text and "(" not in text.split("{")[0]:
            entry.members = members_of(text) if kind != "constant" or text.lstrip().startswith("enum") else []
        self.add(entry, blank)

    def class_of(self, text, line, blank):
        """Reads the public part of a C++ class as a header of its own."""
        kind, names = names_of(text)
        if not names or SPECIAL.match(text) or self.private(names[0]):
            self.doc = ""
            return
        start = text.index("{") + 1
        inner = Reader(self.private, inside=True)
        inner.read(
            text[start : closing(text, start - 1) - 1],
            line + text.count("\n", 0, start),
            True,
            not re.match(r"(template.*?>\s*)?class\b", text, re.DOTALL),
        )
        entry = Entry(kind, names, [re.sub(r"\s+", " ", without_comments(text[:start - 1])).strip()], self.doc,
                      line)
        entry.inner = [one for _, entries in inner.sections for one in entries]
        for one in entry.inner:
            one.owner = one.owner or names[0]
        self.add(entry, blank)

    def read(self, text, line, cplusplus, public=True):
        """Reads a part of a header. Of a class it reads only the public members."""
        for what, part, offset, blank in items_of(text):
            at = line + offset - 1
            if what == "access":
                public = part == "public"
                self.doc, self.last = "", None
            elif not public:
                continue
            elif what == "comment":
                self.comment(part)
            elif what == "trailing":
                self.trailing(part)
            elif what == "directive":
                self.macro(part, at, blank)
            elif re.match(r"(inline )?namespace\b", part):
                name = re.match(r"(?:inline )?namespace\s+([\w:]*)", part).group(1)
                if name and not self.private(name):
                    start = part.index("{") + 1
                    self.doc = ""
                    self.read(part[start:-1], at + part.count("\n", 0, start), cplusplus)
            elif cplusplus and re.match(r"(template\s*<.*?>\s*)?(class|struct)\s+[^;(]*\{", part, re.DOTALL):
                self.class_of(part, at, blank)
            else:
                self.code(part, at, blank)


def is_private(name):
    """Returns whether a name is not for users: it has two underscores, or is a namespace or guard of our
    own."""
    return (
        name.lower().startswith("tw__")
        or name in ("detail", "internal", "impl", "std")
        or name.startswith("TICKWHEEL_")
        and name.endswith(("_H", "_HPP"))
    )


def read_header(path):
    """Reads one header and returns it."""
    text = path.read_text()
    start = text.index("/*")
    end = comment_end(text, start)
    head = comment_text(text[start:end])
    head = re.sub(r"^SPDX-License-Identifier:.*\n*", "", head)
    brief, _, rest = head.partition("\n\n")
    brief = re.sub(r"\s+", " ", brief)
    brief = re.sub(rf"^tickwheel/{re.escape(path.name)}\s+-\s+", "", brief)
    # The part that only C++ sees (extern "C") is of no use to a reader. It becomes empty lines, which keep the
    # line numbers.
    rest_of_text = re.sub(
        r"^#ifdef __cplusplus\n.*?^#endif$",
        lambda m: "\n" * m.group().count("\n"),
        text[end:],
        flags=re.MULTILINE | re.DOTALL,
    )
    reader = Reader(is_private)
    reader.read(rest_of_text, text.count("\n", 0, end) + 1, path.suffix == ".hpp")
    return Header(path, brief, rest.strip("\n"), [s for s in reader.sections if s[1]])


def is_forward(entry):
    """Returns whether an entry only announces a type."""
    return (
        entry.kind in ("struct", "class", "union")
        and entry.declarations[0].endswith(";")
        and "{" not in entry.declarations[0]
    )


def read_all(folder):
    """Reads every header of a folder.

    If one header announces a type and another header defines it, only the definition is kept. An announced type
    without our prefix belongs to another library, and is left to the manual of that library.
    """
    paths = sorted([*folder.glob("*.h"), *folder.glob("*.hpp")], key=lambda path: (path.suffix, path.name))
    headers = [read_header(path) for path in paths]
    defined = {
        name
        for header in headers for entry in header.entries() if not is_forward(entry) for name in entry.names
    }
    for header in headers:
        header.sections = [(
            title,
            [
                entry for entry in entries
                if not is_forward(entry) or (entry.names[0] not in defined and entry.names[0].startswith("tw_"))
            ],
        ) for title, entries in header.sections]
        for title, entries in header.sections:
            defined |= {entry.names[0] for entry in entries if is_forward(entry) and entry.doc}
        header.sections = [section for section in header.sections if section[1]]
    return headers


def labels_of(doc):
    """Splits a comment into its text and its labelled sentences. Returns (text, [(label, text)]).

    The text of a label may begin on the next line, with a list or with code. Its indentation is kept.
    """
    parts = LABEL.split(doc)
    labels = zip(parts[1::2], parts[2::2])
    return parts[0].strip("\n "), [(label, text.strip("\n").rstrip()) for label, text in labels]


def faults_of(headers):
    """Yields a sentence for each declaration in the headers that no comment documents.

    A member of a C++ class needs no comment, because the class has a comment. The C function of the same name
    describes the member, and the description must not be repeated.
    """
    for header in headers:
        if not header.brief:
            yield f"{header.path.name}: its head does not describe it"
        for entry in header.entries():
            if not entry.doc.strip() and not entry.owner:
                yield f"{header.path.name}:{entry.line}: {entry.kind} {', '.join(entry.names)} has no comment"
            labels = [label for label, _ in labels_of(entry.doc)[1]]
            examples = [text for label, text in labels_of(entry.doc)[1] if label == "Example"]
            if any(re.search(r"^\s*- ", text, re.MULTILINE) for text in examples) or "Returns" in labels and \
                    "Example" in labels[:labels.index("Returns")]:
                names = ", ".join(entry.names)
                yield f"{header.path.name}:{entry.line}: the example of {names} cuts its comment"
