"""A field's trailing comment documents it: `returns: np.ndarray  # (seeds, marks), exact`."""

import io
import tokenize
from typing import Any

from griffe import Attribute, Class, Docstring, Extension


class FieldComments(Extension):
    """Takes the comment behind an attribute for its docstring, where it has none."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        for member in cls.members.values():
            if (
                isinstance(member, Attribute)
                and not member.docstring
                and (told := _comment(member))
            ):
                member.docstring = Docstring(told, lineno=member.lineno, parent=member)


def _comment(of: Attribute) -> str:
    """The comment on the attribute's last line."""
    if of.endlineno is None:
        return ""
    last = of.lines_collection[of.filepath][of.endlineno - 1]
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(last.strip()).readline)]
    except (tokenize.TokenError, IndentationError):
        return ""
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    if not found or found[0].startswith(("# noqa", "# pyright", "# type:")):
        return ""
    text = found[0].lstrip("# ").strip()
    return text[:1].upper() + text[1:]
