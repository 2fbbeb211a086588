"""Every Python block of docs/learning.md runs, in order, as a reader would run them."""

import re
import warnings
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "learning.md"


def test_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # diffprivlib warns about its own ways of leaking
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert 8 == len(blocks)
    assert "treats the number of rows as public is not private under sampling" in said
    assert "personalized differential privacy, protects presence" in said
    assert "run 2 of" in said
