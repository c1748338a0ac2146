"""Tokens as a text that is read: between which of them there is a space."""

from collections.abc import Sequence
from typing import Any

import regex

from tinylib.lab.data.text import IDEOGRAPHS, UNSPACED


def _whole(pattern: str) -> Any:
    return regex.compile(pattern, regex.V1 | regex.DOTALL).fullmatch


# The rules stand again, for the page, in live/page/words.js; a test compares both.
_CLOSED_BY = dict(zip("\"'“‘„‚”«»‹›", ('"', "'", "”", "’'", "“”", "‘'", "”", *"»«›‹"), strict=True))
"""What opens a quotation, and what closes it then: „ja“ in German, „tak” in Polish."""

_word, _letter, _number = _whole(r"\p{L}.*"), _whole(r"\p{L}"), _whole(r"[-+−]?\p{Nd}.*")
_of_number = _whole(r"[%‰°]|s|st|nd|rd|th|er|ère|ème|h\p{Nd}\p{Nd}")  # 50%, 1st, 1990s, 2h30
_left = _whole(r"[\p{Terminal_Punctuation}\p{Pe}…·՝/]|n't|[-']\p{L}.*")  # word. is n't
_right = _whole(r"[\p{Ps}¿¡#@/\u1361]|.+['\u0f0b\u0f0c]")  # ( word, l' arbre
_range, _currency, _repeated = _whole(r"[-‑–]"), _whole(r"\p{Sc}"), _whole(r"[-*=+~<>|\\]")
_dutch = _whole("avonds|middags|morgens|nachts|ochtends|winters|zomers")  # 's avonds
_hyphened = _whole(r".*-\p{L}")  # va-t ' en, as models have it that learned fra_eng
_ideograph, _unspaced = _whole(rf"[{IDEOGRAPHS}].*"), _whole(rf"[{UNSPACED}].*")
_foreign = _whole(r".*[\p{L}--\p{Script=Latin}].*")
_cut, _cut_before = _whole(r".*[sxz]|po|mo"), _whole(r"em|tis|twas|til|cause|[kmnrt]|\p{Nd}.*")


def joined(words: Sequence[str]) -> str:
    """Tokens as a text: what :func:`tinylib.lab.data.tokenise` has parted is one again.

    The spaces are those that most languages write: none before . , ! ? ) or a clitic, none after
    ( ¿ l' or a currency before its number, none inside quotation marks, none around / and none
    between the characters of a script that has none. « and » have spaces inside where all letters
    are Latin, as in French, and none elsewhere, as in Russian.

    Tokens do not tell everything, so these come back otherwise: a capital as a small letter; ’ as
    '; *là ?*, *50 %*, *and / or* without their space; *5€*, *yes—no*, *3d*, *at&t* with one, as
    *5 €*, *yes — no*, *3 d*, *at & t*; *«sí»* as *« sí »*; *10 - 3* as the range *10-3*; *J. R. R.*
    as *j.r.r.*; *example.org* without its https:// as *example. org*. Two ' that both follow an s
    and come before a word end words, as in *the dogs' and the cats' tails*.
    """
    roles, foreign = _quotations(words), any(map(_foreign, words))

    def part(i: int) -> str:
        before, a, b, after = (words[j] if 0 <= j < len(words) else "" for j in range(i - 2, i + 2))
        opened, closed = roles.get(i - 1) == "opens", roles.get(i) == "closes"
        if opened or closed:
            spaced = (opened and a == "«") or (closed and b == "»")
            tight = foreign or not spaced
        elif i in roles:
            tight = _right(a) or _ideograph(a)
        else:
            tight = (
                (_left(b) and not (b == "'s" and _dutch(after)))
                or (a == "'" and _hyphened(before))
                or _right(a)
                or _ideograph(a)
                or _ideograph(b)
                or (_unspaced(a) and _unspaced(b))
                or (_number(a) and (_of_number(b) or (_range(b) and _number(after))))
                or (_number(b) and _range(a) and _number(before))
                or (_number(b) and _currency(a) and not _number(before))
                or (a == "°" and b in ("c", "f"))
                or (a == "." and after == "." and _letter(before) and _letter(b))  # u. s.
                or (a == "&" and _letter(before) and _letter(b))
                or (b == "&" and _letter(a) and _letter(after))
                or (a == b and _repeated(a))
            )
        return b if i == 0 or tight else f" {b}"

    return "".join(map(part, range(len(words))))


def _quotations(words: Sequence[str]) -> dict[int, str]:
    """For the place of each quotation mark whether it "opens" or "closes" what it stands at.

    An apostrophe that ends a word, as in *the dogs' bones*, closes; so does the sign of inches.
    """
    roles: dict[int, str] = {}
    open_at: list[int] = []
    apostrophes = [i for i, word in enumerate(words) if word == "'"]

    def next_word(i: int) -> bool:
        return i + 1 < len(words) and bool(_word(words[i + 1]))

    def ends_word(i: int) -> bool:
        return i > 0 and bool(_cut(words[i - 1])) and next_word(i)

    for i, word in enumerate(words):
        opener = next((j for j in reversed(open_at) if word in _CLOSED_BY[words[j]]), None)
        left = [j for j in apostrophes if j >= i]
        if opener is not None:
            roles |= {opener: "opens", i: "closes"}
            open_at = open_at[: open_at.index(opener)]
        elif word == "'" and ends_word(i) and (len(left) % 2 or ends_word(left[1])):
            roles[i] = "closes"
        elif word in _CLOSED_BY:
            open_at.append(i)
    for i, word in enumerate(words):
        if i in roles or word not in "\"'“”‘’„‚«»‹›":
            continue
        before, after = (words[j] if 0 <= j < len(words) else "" for j in (i - 1, i + 1))
        ended = {
            "'": _word(before) and not _cut_before(after),
            '"': _number(before) or not after,
        }
        roles[i] = "closes" if ended.get(word, word in "”’»›") else "opens"
    return roles
