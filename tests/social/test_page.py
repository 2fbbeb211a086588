import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "social.md"


def test_the_example_on_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    assert "113 people" in capsys.readouterr().out
