"""The pages of the demonstration in Chromium: bytes of each, and the time from the click to a visible answer.

It needs /usr/bin/chromium and Playwright. The demonstration answers on a tick of 0.5 s.
"""

import re
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep

import httpx
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from rich.console import Console
from rich.table import Table as Shown

PAGES = {
    "person": ("/me", "/me/choose", "/me/answers", "/me/print"),
    "analyst": ("/ask", "/tables", "/history", "/balance"),
    "steward": (
        *("/steward", "/steward/tables", "/steward/table?name=patients", "/steward/policy?name=patients"),
        *("/steward/protect", "/steward/protect?source=survey.parquet", "/steward/people", "/steward/choice"),
        *("/steward/members", "/steward/use", "/steward/audit"),
    ),
}
QUESTIONS = 20
MOST_BYTES, MOST_SECONDS = 100_000, 2.0


def main() -> None:
    console = Console()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with tempfile.TemporaryFile("w+") as told, sync_playwright() as playwright:
        words = [sys.executable, "-m", "discretion", "demo", "--serve", "--port", str(port)]
        served = subprocess.Popen(words, stdout=told, stderr=subprocess.STDOUT)
        try:
            links = _links(Path(f"/proc/self/fd/{told.fileno()}"), port)
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            visits = {role: _signed_in(browser, link) for role, link in links.items()}
            console.print(_sizes(visits, f"http://127.0.0.1:{port}"))
            console.print(_times(visits["analyst"], f"http://127.0.0.1:{port}"))
            browser.close()
        finally:
            served.terminate()
            served.wait()


def _links(told: Path, port: int) -> dict[str, str]:
    """Return the three links that the demonstration prints, as soon as they work."""
    end = monotonic() + 120
    while monotonic() < end:
        found = re.findall(r"http://\S+/sign-in\S+", told.read_text())
        with suppress(httpx.HTTPError):
            if len(found) == len(PAGES) and httpx.get(f"http://127.0.0.1:{port}/health").json()["status"] == "ok":
                return dict(zip(("steward", "analyst", "person"), found, strict=True))
        sleep(0.2)
    raise SystemExit("The demonstration did not start.")


def _signed_in(browser: Browser, link: str) -> BrowserContext:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("main").get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
    page.close()
    return context


def _sizes(visits: dict[str, BrowserContext], url: str) -> Shown:
    """Load each page without a cache, and add up all that it loads."""
    table = Shown(title="bytes of each page with every file that it loads, not compressed")
    for heading in ("role", "page", "bytes"):
        table.add_column(heading, justify="right" if heading == "bytes" else "left")
    for role, paths in PAGES.items():
        for path in paths:
            tab, loaded = visits[role].new_page(), []
            tab.on("response", lambda one, loaded=loaded: loaded.append(one))
            tab.route("**/*", lambda route: route.continue_())
            tab.goto(url + path, wait_until="networkidle")
            size = sum(len(one.body()) for one in loaded if one.status == 200)
            table.add_row(role, path, f"{size:,}{'' if size < MOST_BYTES else ' TOO LARGE'}")
            tab.close()
    return table


def _times(analyst: BrowserContext, url: str) -> Shown:
    """Ask questions of one's own, each of them new, and wait until the figure can be seen."""
    page, seconds = analyst.new_page(), []
    for number in range(QUESTIONS):
        page.goto(f"{url}/ask")
        page.fill("#sql", f"SELECT COUNT(*) FROM patients WHERE age > {20 + number}")
        page.fill("#percent", "0.5")
        page.wait_for_selector("#outlook .headline")  # what it costs is read first
        start = perf_counter()
        page.get_by_role("button", name="Ask and spend").click()
        page.wait_for_selector("h1.figure")
        seconds.append(perf_counter() - start)
    table = Shown(title="seconds from the click to the visible answer, tick 0.5 s")
    for heading in ("questions", "first", "median", "largest", "below 2 s"):
        table.add_column(heading, justify="right")
    below = sum(one < MOST_SECONDS for one in seconds)
    cells = (f"{seconds[0]:.2f}", f"{median(seconds):.2f}", f"{max(seconds):.2f}", f"{below} of {QUESTIONS}")
    table.add_row(str(QUESTIONS), *cells)
    return table
