"""How a window looks and is called, the same everywhere: in pictures, in the report, in tables."""

import re
import zlib

# The same N has the same colour everywhere. The paper's windows have Okabe and Ito's colours; the
# others were chosen far from those and from each other, as red- and green-blind readers see them.
COLOURS = {
    1: "#E69F00",
    4: "#CC79A7",
    32: "#0072B2",
    128: "#009E73",
    256: "#56B4E9",
    "all": "#D55E00",
    2: "#99CC77",
    8: "#7766FF",
    16: "#443300",
    64: "#110099",
    "adaptive": "#DD0044",
}
OTHERS = ("#0000FF", "#663355", "#113388", "#7F7F7F")  # windows outside the table, never solid
# Where curves coincide, the one beneath shows.
STYLES = {128: "--", 256: "-.", "all": ":"}
OTHER_STYLES = ("--", "-.", ":")


def colour(window: str | int) -> str:
    """The colour of a window; one outside the table gets the same one every time."""
    key = _key(window)
    return COLOURS.get(key) or OTHERS[_hash(key) % len(OTHERS)]


def line_style(window: str | int) -> str:
    """The line style of a window, which also tells apart those outside the table."""
    key = _key(window)
    if key in COLOURS:
        return STYLES.get(key, "-")
    return OTHER_STYLES[_hash(key) // len(OTHERS) % len(OTHER_STYLES)]


def _key(window: str | int) -> str | int:
    name = str(window).strip().lower()
    return int(name) if re.fullmatch(r"[0-9]+", name) else name


def _hash(key: str | int) -> int:
    return zlib.crc32(str(key).encode())  # the same in every process


def window_label(window: str) -> str:
    """N = 32, N adaptive, or N = 2 k with its exponent raised."""
    if window.strip().lower() == "adaptive":
        return "N adaptive"
    power = re.fullmatch(r"(?:([\d.]+)\s*\*\s*)?k\s*\^\s*([\d.]+)", window.strip())
    return f"N = {power[1] or ''}k$^{{{power[2]}}}$" if power else f"N = {literal(window)}"


def panel_title(env: str) -> str:
    """EmptyRoom 3×3 for understudy/EmptyRoom-3x3-v0; other names as they are."""
    room = re.fullmatch(r"(?:understudy/)?(Empty|Slippery)Room-(\d+)x(\d+)(?:-v0)?", env)
    return f"{room[1]}Room {room[2]}×{room[3]}" if room else env


def literal(text: str) -> str:
    """A name as it is: a dollar sign in it begins no formula."""
    return text.replace("$", r"\$")


def natural(name: str) -> tuple[list[str], list[int]]:
    """Sorts 3x3 before 11x11, and numbers before words."""
    return re.split(r"\d+", name), [int(digits) for digits in re.findall(r"\d+", name)]
