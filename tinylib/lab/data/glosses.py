"""English beneath the French: what each word of the grammar means, for readers without French.

glosses()["noire"]                       "black (f)"
gloss("il la voit".split())              ["he", "her", "sees"]

After a form that says so stands (m) for masculine, (f) for feminine, (pl) for plural.
"""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from tinylib.lab.data import grammar
from tinylib.lab.data.dictionary import dictionary

ARTICLES = {
    "le": "the (m)",
    "la": "the (f)",
    "les": "the (pl)",
    "un": "a (m)",
    "une": "a (f)",
    "des": "some",
    "de": "some, any",
    "au": "to the (m)",
    "aux": "to the (pl)",
}
LITTLE = {
    "ne": "(not)",
    "pas": "not",
    "jamais": "never",
    "qui": "that",
    "que": "that",
    "à": "to",
    "et": "and",
    "mais": "but",
    "très": "very",
    "avec": "with",
    "<unk>": "unknown",
    "<bos>": "start",
    "<eos>": "end",
}
BEFORE_VERB = {"le": "him", "la": "her", "les": "them", "l'": "him, her"}


@cache
def glosses() -> dict[str, str]:
    """The English of each French word, and of the special tokens; "." has none."""
    meanings: dict[str, list[str]] = {word: [text] for word, text in {**ARTICLES, **LITTLE}.items()}

    def enter(french: str, english: str) -> None:
        texts = meanings.setdefault(french, [])
        if english not in texts:
            texts.append(english)

    for noun in grammar.ANIMATE + grammar.THINGS:
        for ours, theirs in zip(noun.english, noun.french, strict=True):
            enter(theirs, ours)
    for adjective in grammar.BEFORE + grammar.COLOURS + grammar.WEIGHTS + grammar.MOODS:
        for form in dict.fromkeys(adjective.french):
            enter(form, adjective.english + _marks(form, adjective.french))
    for verb in grammar.INTRANSITIVE + grammar.TRANSITIVE + grammar.DITRANSITIVE:
        base, third, particle = verb.english
        for person, form in enumerate(verb.french):
            if person == 0 and form == verb.french[1]:
                continue  # chante is "sing" and "sings": one of them is enough
            enter(form, f"{third if person == 1 else base} {particle}".strip())
    for form, english in zip(grammar.BE.french, "am is are are are".split(), strict=True):
        enter(form, english)
    pronouns = [(ours, theirs) for ours, theirs, *_ in grammar.PRONOUNS]
    for ours, theirs in [*pronouns, *grammar.NUMBERS, *grammar.PLACES, *grammar.ADVERBS]:
        enter(theirs, "I" if ours == "i" else ours)
    said = {word: ", ".join(texts) for word, texts in meanings.items()}
    short = {form: said[word] for word, form in grammar.ELISIONS.items()}
    return {**said, **short, "l'": "the"}


def _marks(form: str, forms: Sequence[str]) -> str:
    """What the form alone says of gender and number; `forms` are those of the grammar."""
    at = [i for i, other in enumerate(forms[:4]) if other == form] or [0]
    gender = {0: "m", 1: "f"}[at[0] % 2] if len({i % 2 for i in at}) == 1 else ""
    plural = "pl" if all(i > 1 for i in at) else ""
    marks = " ".join(filter(None, [gender, plural]))
    return f" ({marks})" if marks else ""


def gloss(words: Sequence[str]) -> list[str]:
    """The English of each word of a French sentence, "" if none is known.

    Before a verb *le, la, les* are *him, her, them*.
    """
    book, verbs = glosses(), dictionary().verbs
    return [
        BEFORE_VERB[word] if word in BEFORE_VERB and after in verbs else book.get(word, "")
        for word, after in pairwise([*words, ""])
    ]
