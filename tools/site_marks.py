"""An underscore is an index: `P̂_h V_{h+1}`, `d'_h − d_h`. Markdown takes a hat or a prime for the
end of a word, and would begin an emphasis there; on these pages emphasis is an asterisk's alone."""

import re
from typing import Any

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor


class Underscore(InlineProcessor):
    """An underscore, as it is."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return m[0], m.start(0), m.end(0)


class Marks(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # After code and links, which may have underscores, and before emphasis.
        md.inlinePatterns.register(Underscore("_+", md), "underscore", 65)


def on_config(config: Any) -> Any:
    config.markdown_extensions.append(Marks())
    return config
