"""Files that a user names: only regular ones, of a size that can be meant, and as UTF-8.

A pipe would be waited on for ever, and a device such as /dev/zero never ends. What is no regular
file is refused before it is opened; a file that is not there is a `FileNotFoundError`, as ever,
for each caller has words of its own for it.
"""

import stat
from pathlib import Path

from understudy.core.errors import UserError

DATA = 8 << 30  # bytes of arrays: demonstrations, policies
TEXT = 64 << 20  # bytes of settings: TOML, JSON

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def regular(path: str | Path, most: int = DATA) -> Path:
    """The path, of a regular file of at most so many bytes; links are followed."""
    path = Path(path)
    try:
        about = path.stat()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # a name too long, a loop of links, no permission
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{str(path)!r} cannot be read: {reason}.") from None
    if not stat.S_ISREG(about.st_mode):
        kind = KINDS.get(stat.S_IFMT(about.st_mode), "something else")
        raise UserError(f"{path} is {kind} in place of a file; give a regular file.")
    bounded(about.st_size, most, path)
    return path


def bounded(size: int, most: int, what: object) -> None:
    """Refuse what is larger than can be meant."""
    if size > most:
        raise UserError(f"{what} has {size:,} bytes; at most {most:,} are read.")


def text(path: str | Path, most: int = TEXT) -> str:
    """What a regular file says, in UTF-8 whatever the locale, without the mark that some editors
    put in front."""
    return regular(path, most).read_text(encoding="utf-8-sig")
