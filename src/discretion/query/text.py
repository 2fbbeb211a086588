"""Text: a query becomes the one statement that it holds, as a tree of few levels."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from discretion.errors import QueryRefused
from discretion.query.place import unfinished
from discretion.query.scalar import refuse_deep

LONGEST = 20_000  # characters of a query
DEEPEST = 60  # levels of nesting
_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)


def one_select(sql: str) -> exp.Select:
    """The one SELECT that a text holds."""
    tree = statement(sql)
    if isinstance(tree, exp.SetOperation):
        raise QueryRefused(f"{type(tree).__name__.upper()} joins several questions. Ask them one by one.")
    if not isinstance(tree, exp.Select):
        raise QueryRefused(f"{type(tree).__name__.upper()} is not a question. Only SELECT is answered.")
    return tree


def statement(sql: str) -> exp.Expr:
    """The one statement that a text holds."""
    if len(sql) > LONGEST:
        raise QueryRefused(f"A query may have {LONGEST:,} characters at most, got {len(sql):,}.")
    if "\0" in sql or any("\ud800" <= sign <= "\udfff" for sign in sql):
        raise QueryRefused("The query contains an invalid character (NUL or a lone surrogate). Remove it.")
    try:
        tokens = [token for token in sqlglot.tokenize(sql, dialect="duckdb") if token.text != ";"]
        if tokens and tokens[0].token_type not in _STARTS:
            raise QueryRefused(f"{tokens[0].text.upper()[:20]} is not a question. Only SELECT is answered.")
        parsed = sqlglot.parse(sql, dialect="duckdb")
        statements = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    except SqlglotError as failure:
        raise unfinished(sql, failure) from None
    if not statements:
        raise QueryRefused("The question is empty. Write a SELECT.")
    if len(statements) != 1:
        raise QueryRefused(f"One question at a time: this text has {len(statements)} statements.")
    tree = statements[0]
    while isinstance(tree, exp.Subquery) and not any(v for k, v in tree.args.items() if k != "this"):
        tree = tree.this
    tree = _balanced(tree)
    refuse_deep([tree], DEEPEST)
    return tree


def _balanced(tree: exp.Expr) -> exp.Expr:
    """The same question with every chain of AND or OR as a tree of few levels."""
    for chain in [node for node in tree.find_all(exp.And, exp.Or) if type(node.parent) is not type(node)]:
        parts, nodes = [], [chain]
        while nodes:
            node = nodes.pop()
            if type(node) is type(chain):
                nodes += [node.expression, node.this]
            else:
                parts.append(node)
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [type(chain)(this=p[0], expression=p[1]) if len(p) == 2 else p[0] for p in pairs]
        chain.replace(parts[0])
    return tree
