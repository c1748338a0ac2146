"""What the site makes of listings: which of them are folded, under which words, and how they read.

Notebooks, and so GitHub and Colab, show every cell. The site folds a cell that a reader can do
without: one that only imports, only builds a widget, only draws a figure, only prints a listing,
only asks for an exercise's answer, or mostly checks what the text says. A figure's caption is left
out of the listing, since it is read below the figure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from pygments import highlight  # type: ignore[import-untyped]
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
from pygments.lexers import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]

# --- which cells are folded ---------------------------------------------------------------------

FIGURE = re.compile(r"(plot|drawings)\.\w+$")  # what draws: plot.lines(...)
# Calls that only fetch or arrange what is drawn, so that a cell with them still only draws.
ARRANGES = set(
    """
    results list dict zip range len sorted round str enumerate torch.tensor torch.arange
    items values keys tolist split index append
    """.split()
)
# What a folded cell is said to do.
IMPORTS = "imports"
ANSWER = "the cell to answer in"
PRINTS = "prints the listing below"
WIDGET = "builds the widget"
FIGURES = "draws the figure"
CHECKS = "checks what the text says"


def folded(source: str) -> str | None:
    """What the cell does, in words for the line that unfolds it; None if it is to be read."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # a line for IPython alone, such as %pip
        return None
    work = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    if not work:
        return IMPORTS
    if re.match(r"answer = \.\.\.", source) and "ex.check_" in source:
        return ANSWER
    *before, last = work
    plain = all(isinstance(node, ast.Assign | ast.AnnAssign) for node in before)
    called = called_name(last)
    if called in ("show", "show_listing") and not before:
        return PRINTS
    if re.search(r"Widget(\.\w+)?$", called) and plain:
        return WIDGET
    if FIGURE.match(called) and plain and all(map(only_arranges, before)):
        return FIGURES
    checking = sum(map(checks, work))
    return CHECKS if 2 * checking > len(work) and not has_output(work) else None


def without_captions(source: str) -> str:
    """The listing without `.captioned("…")`, whose sentence is read below the figure."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return source
    lines = source.encode().splitlines(keepends=True)  # ast counts in bytes
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    code = source.encode()
    for node in reversed(body):
        call = node.value if isinstance(node, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        drawn = call.func.value
        if call.func.attr == "captioned" and isinstance(drawn, ast.Call):
            start, end = (
                starts[(at.end_lineno or 1) - 1] + (at.end_col_offset or 0) for at in (drawn, call)
            )
            code = code[:start] + code[end:]
    return code.decode()


def called_name(node: ast.AST) -> str:
    """The dotted name that an expression statement calls, or ''."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = node.value.func
        if isinstance(name, ast.Attribute) and name.attr == "captioned":
            return called_name(ast.Expr(name.value))  # what draws the figure
        return ast.unparse(name)
    return ""


def only_arranges(node: ast.AST) -> bool:
    """Whether it computes nothing: no operator, and no call but of what fetches and arranges."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp | ast.Lambda):
            return False
        if isinstance(part, ast.Call):
            name = ast.unparse(part.func)
            if name not in ARRANGES and name.rpartition(".")[2] not in ARRANGES:
                return False
    return True


def checks(node: ast.AST) -> bool:
    """An assertion, or a loop around one."""
    if isinstance(node, ast.For | ast.With):
        return any(isinstance(part, ast.Assert) for part in ast.walk(node))
    return isinstance(node, ast.Assert)


def has_output(nodes: list[ast.stmt]) -> bool:
    """Whether something is printed, shown, or defined for later: that is to be read."""
    return any(
        isinstance(part, ast.FunctionDef | ast.ClassDef)
        or (isinstance(part, ast.Call) and ast.unparse(part.func) in ("print", "show", "raises"))
        for node in nodes
        for part in ast.walk(node)
    )


# --- docstrings without LaTeX -------------------------------------------------------------------

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ",
    "mu": "μ", "sigma": "σ", "tau": "τ", "phi": "φ", "Phi": "Φ", "pi": "π", "omega": "ω",
    "lambda": "λ", "eta": "η", "rho": "ρ", "sum": "∑", "prod": "∏", "cdot": "·", "odot": "⊙",
    "times": "×", "le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "infty": "∞", "to": "→",
    "mid": "|", "top": "⊤", "dots": "…", "ldots": "…", "cdots": "⋯", "approx": "≈", "pm": "±",
    "max": "max", "min": "min", "log": "log", "ln": "ln", "exp": "exp", "tanh": "tanh",
    "sin": "sin", "cos": "cos", "quad": "  ", "partial": "∂", "nabla": "∇", "circ": "∘",
    "lfloor": "⌊", "rfloor": "⌋", "lVert": "‖", "rVert": "‖", "Vert": "‖", "ell": "ℓ",
}  # fmt: skip
RAISED = dict(zip("0123456789+-=()ijknT⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱʲᵏⁿᵀᵀ", strict=True))
LOWERED = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)
GROUP = r"(?:\{((?:[^{}]|\{[^{}]*\})*)\}|(\\[a-zA-Z]+|[^\\\s{}]))"  # {…}, one command or one sign


def plain_formula(tex: str) -> str:
    """A formula in LaTeX as a line of text: ``e^{-x}`` becomes e^(-x), ``x_t`` becomes xₜ."""
    tex = re.sub(r"\\(?:mathrm|text|operatorname|mathbf|boldsymbol)\{([^{}]*)\}", r"\1", tex)
    tex = re.sub(r"\\(?:left|right|[bB]igg?[lr]?)\b", "", tex)
    tex = re.sub(r"\\[,;:! ]", " ", tex)
    tex = re.sub(r"\\[td]?frac" + GROUP + r"\s*" + GROUP + r"(?=(\()?)", fraction, tex)
    tex = re.sub(r"\\sqrt\s*" + GROUP, lambda m: "√" + bracketed(m[1] or m[2]), tex)
    tex = re.sub(r"\\(?:hat|bar|tilde)\s*" + GROUP, lambda m: f"{m[1] or m[2]}\u0302", tex)
    tex = re.sub(r"(\\(?:sin|cos|ln|log))(?=\\)", r"\1 ", tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda m: SYMBOLS.get(m[1], m[1]), tex)
    for mark, letters in (("_", LOWERED), ("^", RAISED)):
        tex = re.sub(re.escape(mark) + GROUP, partial(script, mark, letters), tex)
    return re.sub(r"\s+", " ", tex.replace("\\{", "{").replace("\\}", "}")).strip()


def fraction(found: re.Match[str]) -> str:
    above, below = found[1] or found[2], found[3] or found[4]
    whole = f"{bracketed(above)}/{bracketed(below)}"
    return f"({whole})" if found[5] else whole


def bracketed(part: str) -> str:
    return part if re.fullmatch(r"\\[a-zA-Z]+|\w", part) else f"({part})"


def script(mark: str, letters: dict[str, str], found: re.Match[str]) -> str:
    """Small letters where Unicode has them, and otherwise the mark itself."""
    text = (found[1] or found[2]).replace(" ", "")
    if all(letter in letters for letter in text):
        return "".join(letters[letter] for letter in text)
    return mark + (text if re.fullmatch(r"[^\W_]|[a-z]+", text) else f"({text})")


def plain_docstrings(code: str) -> str:
    """The listing, its docstrings without LaTeX and without the marks of reStructuredText."""
    return re.sub(r'r?"""(.*?)"""', plain_docstring, code, flags=re.DOTALL)


def plain_docstring(found: re.Match[str]) -> str:
    text = re.sub(r"\$([^$]+)\$", lambda m: plain_formula(m[1]), found[1])
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return f'"""{text}"""'


# --- light listings -----------------------------------------------------------------------------

# What is coloured. All else, such as names and brackets, stays text of the listing.
COLOURED = (
    Token.Keyword,
    Token.Comment,
    Token.Literal,
    Token.Name.Function,
    Token.Name.Class,
    Token.Name.Decorator,
    Token.Operator.Word,
    Token.Generic,
    Token.Error,
)


class LightFormatter(HtmlFormatter):
    """As Pygments' own, with an element only for what has a colour, and one for a run of it."""

    def format_unencoded(self, tokensource: Any, outfile: Any) -> None:
        super().format_unencoded(light(tokensource), outfile)


def highlighted(code: str) -> str:
    """Python as the site shows it."""
    html: str = highlight(code, PythonLexer(), LightFormatter())
    return html


def light(tokens: Iterator[tuple[_TokenType, str]]) -> Iterator[tuple[_TokenType, str]]:
    """The tokens, those without a colour as plain text, neighbours of one kind joined."""
    kind, text = Token.Text, ""
    for token, piece in tokens:
        new = token if any(token in colour for colour in COLOURED) else Token.Text
        if new in Token.Literal.String:
            new = Token.Literal.String
        if new is kind:
            text += piece
            continue
        if text:
            yield kind, text
        kind, text = new, piece
    if text:
        yield kind, text
