"""Python: a question becomes the program that asks it, to be copied into a notebook."""

from discretion.answer import Question

DEFAULTS = Question(sql="")


def as_python(url: str, question: Question) -> str:
    """Return a program that asks the same question."""
    names = ("share", "mechanism", "assume", "expect", "with_interval", "partial", "options", "within", "model")
    options = [(name, getattr(question, name)) for name in names if getattr(question, name) != getattr(DEFAULTS, name)]
    options = [(name, dict(value) if name == "options" else value) for name, value in options]
    said = "".join(f"    {name}={value!r},\n" for name, value in options)
    return (
        "import os\n\nimport discretion as dn\n\n"
        f'db = dn.connect({url!r}, token=os.environ["DISCRETION_TOKEN"])\n'
        f"answer = db.sql(\n    {_text(question.sql)},\n{said})\nanswer"
    )


def stored_as_python(url: str, entry: str) -> str:
    """Return a program that fetches an answer again, free of charge."""
    return (
        "import os\n\nimport discretion as dn\n\n"
        f'db = dn.connect({url!r}, token=os.environ["DISCRETION_TOKEN"])\n'
        f"answer = db.answer({entry!r})\nanswer"
    )


def _text(sql: str) -> str:
    """Return a text as Python writes it: over several lines if that needs no escapes."""
    plain = all(sign.isprintable() or sign == "\n" for sign in sql) and not {"\\", '"'} & set(sql)
    return f'"""{sql}"""' if "\n" in sql and plain else repr(sql)
