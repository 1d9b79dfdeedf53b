"""Links that leave docs/ (a source file, a folder of results) have no page on the site: there they
become their text, and a target that does not exist fails the strict build."""

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)#:]+)(?:#[^)]*)?\)")
log = logging.getLogger("mkdocs.hooks.site_links")


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    root = Path(config.config_file_path).parent
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def inside(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["target"]))
        if target.startswith("docs/"):
            return link[0]
        if not (root / target).exists():
            log.warning("%s links to %s, which does not exist", page.file.src_uri, link["target"])
        return link["text"]

    return LINK.sub(inside, markdown)
