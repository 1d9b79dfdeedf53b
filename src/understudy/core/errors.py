"""The exception for bad input, and for settings that lead nowhere."""

import re

LONGEST = 2_000  # characters of a sentence
# What a terminal obeys instead of showing: ESC with what belongs to it.
ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?"
)


class UserError(ValueError):
    """Input that cannot be used: one sentence that names the thing and what to do about it.

    The command line prints it without a traceback and exits with code 2. It may quote anything, a
    file's text or an environment's exception, so it is made plain.
    """

    def __init__(self, sentence: object = "") -> None:
        super().__init__(plain(str(sentence)))


class Diverged(UserError):
    """Something became NaN: the same settings would lead there again."""


def plain(text: str) -> str:
    """As one line that a terminal shows as it is: no escape codes, no control characters, none
    that turn the direction of writing, no halves of characters, and not without end."""
    shown = "".join(map(_shown, ESCAPE.sub("", text)))
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST // 2]} … {shown[-LONGEST // 2 :]}"


def _shown(one: str) -> str:
    if one.isprintable():
        return one
    if one.isspace():
        return " "
    return "?" if "\ud800" <= one <= "\udfff" else ""
