"""Real Chromium on a real service. Playwright's loop must not outlive a file: other tests run loops of their own."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from served import Served, served

CHROMIUM = Path("/usr/bin/chromium")
MISSING = "The pages were not tested: there is no /usr/bin/chromium. `make test` installs it where it may use apt-get."
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
FLAGS += ("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests of the pages in one process: Chromium is started once for each file."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("web"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser for one file of tests."""
    if not CHROMIUM.exists():
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def clinic_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that the tests of the pages share: none of them stops it or empties anybody's allowance."""
    with served(tmp_path_factory.mktemp("pages")) as started:
        yield started


@dataclass
class Visit:
    """One browser profile at the service; it notes what no page may do: run inline code, or fail in a script."""

    context: BrowserContext
    url: str
    page: Page = field(init=False)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.set_default_timeout(15_000)
        self.page = self.tab()

    def tab(self) -> Page:
        """Open another tab of the same profile."""
        opened = self.context.new_page()
        opened.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        opened.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        opened.on(
            "console",
            lambda told: self.faults.append(told.text) if "Content Security Policy" in told.text else None,
        )
        return opened

    def go(self, path: str) -> Page:
        """Open a page of the service."""
        self.page.goto(self.url + path)
        return self.page

    def sign_in(self, code: str) -> Page:
        """Follow a link and press its button."""
        self.go(f"/sign-in?code={code}")
        self.page.get_by_role("main").get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(lambda url: "/sign-in" not in url)
        return self.page


@pytest.fixture
def visit(chromium: Browser, clinic_town: Served) -> Iterator[Callable[..., Visit]]:
    """Begin visits: visit(), or visit(scripts=False), visit(phone=True), visit(dark=True), visit(town=...)."""
    begun: list[Visit] = []

    def begin(
        *, scripts: bool = True, phone: bool = False, dark: bool = False, town: Served | None = None, **how: Any
    ) -> Visit:
        context = chromium.new_context(
            java_script_enabled=scripts,
            viewport=PHONE if phone else DESK,
            color_scheme="dark" if dark else "light",
            **how,
        )
        begun.append(Visit(context, (town or clinic_town).url))
        return begun[-1]

    yield begin
    for one in begun:
        with suppress(Exception):
            one.context.close()
    assert [] == [fault for one in begun for fault in one.faults]


def assert_accessible(page: Page) -> None:
    """Axe finds nothing wrong with a page, in light and in dark, and it fits its width; on a phone only the latter."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{page.url} is {wide} px too wide"
    if page.viewport_size == PHONE:
        return  # the same elements and colours as on a desk, which axe has seen
    colours = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
    for scheme, rules in (("dark", colours), ("light", {"resultTypes": ["violations"]})):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options=rules)
        assert 0 == found.violations_count, f"{page.url} ({scheme})\n{found.generate_report()}"


@pytest.fixture
def accessible() -> Callable[[Page], None]:
    return assert_accessible
