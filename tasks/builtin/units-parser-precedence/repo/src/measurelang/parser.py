"""Recursive descent parser: text to expression tree."""

from .errors import ParseError
from .nodes import Binary, Neg, Number, Unit
from .tokens import END, NAME, NUMBER, tokenize


def parse(text):
    """Parse `text` and return the root node of its tree.

    Raises `ParseError` if the text is not a complete expression.
    """
    parser = _Parser(tokenize(text))
    return parser.parse()


class _Parser:
    """One method for each level of the grammar, loosest first."""

    def __init__(self, tokens):
        self._tokens = tokens
        self._index = 0

    def parse(self):
        node = self._sum()
        if not self._at(END):
            raise self._unexpected()
        return node

    def _sum(self):
        node = self._product()
        while self._at("+", "-"):
            op = self._advance().text
            node = Binary(op, node, self._product())
        return node

    def _product(self):
        left = self._power()
        if self._at("*", "/"):
            op = self._advance().text
            return Binary(op, left, self._product())
        if self._at(NUMBER, NAME, "("):
            return Binary("*", left, self._product())
        return left

    def _power(self):
        base = self._unary()
        if self._accept("^"):
            return Binary("^", base, self._power())
        return base

    def _unary(self):
        if self._accept("-"):
            return Neg(self._unary())
        return self._atom()

    def _atom(self):
        if self._at(NUMBER):
            return Number(float(self._advance().text))
        if self._at(NAME):
            return Unit(self._advance().text)
        if self._accept("("):
            node = self._sum()
            if not self._accept(")"):
                raise self._unexpected()
            return node
        raise self._unexpected()

    def _at(self, *kinds):
        return self._tokens[self._index].kind in kinds

    def _advance(self):
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _accept(self, kind):
        if not self._at(kind):
            return False
        self._advance()
        return True

    def _unexpected(self):
        token = self._tokens[self._index]
        what = "end of text" if token.kind == END else repr(token.text)
        return ParseError(f"unexpected {what}", token.position)
