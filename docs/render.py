"""`make docs`: README and every page here as one small web site in docs-output/, readable without a server."""

import re
import shutil
from html import escape, unescape
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs-output"
STYLE = (
    "body{max-width:56rem;margin:2rem auto;padding:0 1rem;font:16px/1.55 system-ui,sans-serif;color:#222}"
    "nav{font-size:.9rem;margin-bottom:2rem}nav a{margin-right:.8rem}pre{background:#f6f6f4;padding:1rem;overflow:auto}"
    "code{font:.9em ui-monospace,monospace}table{border-collapse:collapse;display:block;overflow:auto}"
    "td,th{border-bottom:1px solid #ddd;padding:.3rem .7rem;text-align:left;vertical-align:top}img{max-width:100%}"
)


def main(site: Path = SITE) -> None:
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir()
    pages = {"index": ROOT / "README.md"} | {page.stem: page for page in sorted((ROOT / "docs").glob("*.md"))}
    nav = "".join(f'<a href="{name}.html">{"discretion" if name == "index" else name}</a>' for name in pages)
    markdown = MarkdownIt("commonmark").enable("table")
    for name, page in pages.items():
        body = re.sub(r'href="(?:docs/)?([\w-]+)\.md(#[^"]*)?"', r'href="\1.html\2"', markdown.render(page.read_text()))
        body = re.sub(r"<h([1-6])>(.*?)</h\1>", _linkable, body)
        head = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>discretion: {escape(name)}</title><style>{STYLE}</style>"
        )
        (site / f"{name}.html").write_text(f"{head}<nav>{nav}</nav>{body}")
    shutil.copytree(ROOT / "docs" / "figures", site / "figures")
    print(f"{len(pages)} pages: open {site.name}/index.html")


def _linkable(heading: re.Match[str]) -> str:
    """A heading with the name that Git hosts give it, so that links to a section work in both places."""
    level, title = heading.groups()
    name = re.sub(r"[^\w\- ]", "", unescape(re.sub(r"<[^>]+>", "", title)).lower()).replace(" ", "-")
    return f'<h{level} id="{escape(name)}">{title}</h{level}>'


if __name__ == "__main__":
    main()
