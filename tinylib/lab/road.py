"""The course drawn as a road: each chapter's question, what failed before it, and the cure.

``road()`` is what a notebook shows. Its HTML is a list that can be read without any style, as on
GitHub; the site's style sheet lays it along a road. It needs nothing but Python.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

WORDS, LINES = 263, 8.1  # of prose and of code, that are read in a minute
PAGE = 15  # minutes to find one's way into a chapter, and to go back to what was missed
MINUTES = {
    "figures": 0.5,
    "widgets": 7.5,
    "trainers": 6.5,
    "museum": 3,
    "broken_gpt": 40,  # with the file that is mended
    "formulas": 1.35,
    "rows": 0.57,
    "questions": 0.3,
}
STOP = 0.6  # minutes at a widget of the tour, which asks for one thing; a training takes longer
OWN_TEXT = 3.5  # minutes to give a model a text of one's own, and to watch how it learns
STARS = {1: 5, 2: 11, 3: 18}  # minutes for an exercise with so many of them


CHAPTERS = Path(__file__).parents[2] / "chapters"


class Milestone(NamedTuple):
    """A chapter: the site adds how many minutes it takes."""

    stem: str
    title: str
    question: str
    before: str
    cure: str


ROAD: Mapping[str, Sequence[Milestone]] = {
    "Translation": (
        Milestone(
            "01_encoder_decoder",
            "Encoder and decoder",
            "How does a sentence become a vector, and a vector a sentence?",
            "a network computes with arrays of one fixed shape, but sentences have any length",
            "one half reads word by word into a vector, the other writes word by word out of it",
        ),
        Milestone(
            "02_seq2seq",
            "Sequence to sequence",
            "How is a translation learned?",
            "a plain recurrent network overwrites its whole state at every word",
            "gates decide, number by number, what is kept and what is overwritten",
        ),
        Milestone(
            "03_decoding",
            "Decoding",
            "How are the words of a translation chosen, and how is it scored?",
            "the likeliest word at each step does not make the likeliest sentence",
            "beam search keeps several beginnings, and BLEU compares the result with a reference",
        ),
    ),
    "Attention": (
        Milestone(
            "04_attention_scoring",
            "Attention scoring",
            "How can we find, among many vectors, the one that is needed now?",
            "a sentence in one vector, or a plain average of its words, counts every word alike",
            "a score for each vector and a softmax give each one its own weight",
        ),
        Milestone(
            "05_seq2seq_attention",
            "Sequence to sequence with attention",
            "How can the decoder find, at every word, the source words that it needs?",
            "a long new sentence is hard to pack into one vector",
            "the decoder attends to all words of the source again, at each word that it writes",
        ),
        Milestone(
            "06_self_attention",
            "Self-attention",
            "How can every word learn from all the others, in one step?",
            "a recurrent network has to pass through all words between two that belong together",
            "each word attends to all words of its own sentence at once",
        ),
        Milestone(
            "07_positional_encoding",
            "Positional encoding",
            "How does a model that sees all words at once know their order?",
            "to self-attention, “dog bites man” and “man bites dog” are the same words",
            "each position gets a code of its own, or turns its queries and keys",
        ),
        Milestone(
            "08_multi_head_attention",
            "Multi-head attention",
            "How can a word attend to several places for several reasons?",
            "one set of attention weights makes one mixture",
            "several heads attend side by side, each in a part of the vector",
        ),
    ),
    "The Transformer": (
        Milestone(
            "09_transformer_block",
            "The Transformer's block",
            "What has to surround attention, so that it can be stacked?",
            "a deep stack of attention alone does not learn",
            "residual connections, normalisation, and a layer that works on each word by itself",
        ),
        Milestone(
            "10_transformer",
            "The Transformer",
            "Can a sentence be translated with nothing but attention?",
            "a recurrent network trains slowly, since each step waits for the one before",
            "a stack of blocks reads all words of a sentence at the same time",
        ),
    ),
    "GPT": (
        Milestone(
            "11_tokens",
            "Tokens",
            "What does a GPT read, if it reads neither letters nor words?",
            "letters make texts long, and a list of words is never complete",
            "frequent neighbours are merged, from single bytes up to whole words",
        ),
        Milestone(
            "12_gpt",
            "GPT",
            "What must a machine learn to continue any text?",
            "translated pairs are rare, and texts without a translation are plenty",
            "the decoder alone predicts the next token of any text",
        ),
        Milestone(
            "13_generation",
            "Generation",
            "Which of the probable tokens should a GPT write?",
            "the likeliest text repeats itself",
            "tokens are drawn by chance, after temperature, top-k or top-p",
        ),
        Milestone(
            "14_kv_cache",
            "KV cache",
            "How does it write the five-hundredth token as quickly as the first?",
            "for each new token, the whole text is computed again",
            "keys and values of the tokens before are kept",
        ),
        Milestone(
            "15_inside_gpt",
            "Inside a GPT",
            "How does it come to its answer, and how can we know?",
            "an attention map shows where a head attends, but not what it takes from there",
            "a part is replaced by that of another text, and the answer shows what it carried",
        ),
        Milestone(
            "16_real_model",
            "A real model",
            "What stands between our GPT and a language model that people use?",
            "a GPT that has read a few stories knows nothing of the world",
            "four parts are exchanged, and a model that has read the web is loaded into them",
        ),
    ),
    "Electives": (
        Milestone(
            "museum",
            "A museum of real mistakes",
            "What is wrong, and which test would have found it?",
            "a wrong mask or a wrong mean stops no program, and its texts are nearly right",
            "an assertion compares with a slow version, or changes what must not matter",
        ),
        Milestone(
            "repair",
            "The broken GPT",
            "Four lines may be wrong. Which experiments tell?",
            "several mistakes at once hide one another, and the loss falls all the same",
            "each part is asked by an experiment of its own, and one story is learned by heart",
        ),
        Milestone(
            "speed",
            "Writing faster",
            "What limits how fast and how far a GPT writes, and how does it get beyond?",
            "each token waits until all parameters have been read from memory",
            "a weight takes one byte, a small model writes ahead, and the cache drops old tokens",
        ),
        Milestone(
            "training",
            "What changed since GPT-2",
            "What lies between our GPT and a chat program of today?",
            "a GPT goes on with a text, and does not do what it is asked",
            "more text and newer parts, then dialogues and what people prefer",
        ),
    ),
}


STRAIGHT = (
    "01_encoder_decoder",
    "04_attention_scoring",
    "06_self_attention",
    "07_positional_encoding",
    "08_multi_head_attention",
    "09_transformer_block",
    "11_tokens",
    "12_gpt",
    "13_generation",
    "16_real_model",
)
"""The straight road: the chapters without which no GPT can be built, in their order."""


def milestones() -> list[Milestone]:
    return [one for part in ROAD.values() for one in part]


# --- how long it takes -------------------------------------------------------------------------


HIDDEN = {"remove-cell", "hide-cell", "hide-input", "remove-input"}  # tags of code out of view
NO_OUTPUT = {"remove-cell", "hide-cell", "hide-output", "remove-output"}
FOLD = re.compile(r"<details.*?</details>", re.S)
FORMULA = re.compile(r"\$\$.*?\$\$", re.S)
FENCE = re.compile(r"```.*?```", re.S)
ROW = re.compile(
    r"^\|(?![-: |]+$)", re.M
)  # of a table in Markdown, but for the line below its head
WORD = re.compile(r"\w[\w’'-]*")


def in_view(cells: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """What these cells show while all folds are closed: how many words, lines of code, figures, …

    Exercises do not count, whose minutes their stars say.
    """
    found: Counter[str] = Counter()
    for cell in before_exercises(cells):
        source, tags = "".join(cell["source"]), {*cell["metadata"].get("tags", [])}
        if cell["cell_type"] == "markdown":
            found["questions"] += source.count('class="predict"')
            found["folds"] += source.count("<details>")  # a question's options have names
            found["formulas"] += len(FORMULA.findall(source))
            found += read(FENCE.sub(" ", FORMULA.sub(" ", FOLD.sub(" ", source))))
            continue
        if not tags & HIDDEN:
            found["cells"] += 1
            found["lines"] += len([line for line in source.splitlines() if line.strip()])
        if not tags & NO_OUTPUT:
            for output in cell["outputs"]:
                found += shown({k: "".join(v) for k, v in output.get("data", {}).items()})
    return found


def before_exercises(cells: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for cell in cells:
        if re.search(r"^## Exercises", "".join(cell["source"]), re.M):
            return
        yield cell


def read(markdown: str) -> Counter[str]:
    """Words and rows of tables."""
    text = re.sub(r"<[^>]+>|\]\([^)]*\)", " ", markdown)
    return Counter(words=len(WORD.findall(text)), rows=len(ROW.findall(markdown)))


def shown(data: Mapping[str, str]) -> Counter[str]:
    """What the output of a cell adds."""
    html, markdown = data.get("text/html", ""), data.get("text/markdown", "")
    if widget := re.search(r'data-widget="([^"]+)"', html):
        kind = widget[1] if widget[1] in MINUTES else "widgets"
        return Counter({"trainers" if "train" in widget[1] else kind: 1})
    if markdown.startswith("```python"):
        return Counter(lines=len(markdown.splitlines()) - 2)
    picture = "image/png" in data or "image/svg+xml" in data
    return read(markdown) + Counter(figures=int(picture), rows=html.count("<tr"))


def reading(cells: Sequence[Mapping[str, Any]], **other: float) -> float:
    """Minutes to read and play with what these cells show.

    With PAGE added, the sum is within a fifth of what learners with a clock needed for the cores of
    chapters 01 to 15, as the last two readers of each estimated them.
    """
    found = in_view(cells)
    each = sum(found[kind] * of for kind, of in ({**MINUTES} | other).items())
    return found["words"] / WORDS + found["lines"] / LINES + each


def minutes(notebook: Mapping[str, Any]) -> tuple[int, int]:
    """Minutes for a chapter, in fives: to read and play, and for its exercises."""
    prose = "\n".join(
        "".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "markdown"
    )
    exercises = sum(STARS[len(some)] for some in re.findall(r"^(★+) ", prose, flags=re.M))
    return 5 * round((PAGE + reading(notebook["cells"])) / 5), 5 * round(exercises / 5)


def tour_minutes(notebook: Mapping[str, Any], trainers: float = STOP) -> int:
    """Minutes for the screens of the tour, or a page like one: nobody has to find their way."""
    return round(reading(notebook["cells"], widgets=STOP, trainers=trainers))


# --- the drawing -------------------------------------------------------------------------------


SIDES = (True, False) * 9  # where a part's milestones stand: the first at the left


def path_segment(left: bool) -> str:
    """A piece of the way that swings out to one side; where there is no style, it has no size."""
    x = 30 if left else 102
    path_data = f'd="M66 0 C66 26 {x} 24 {x} 50 S66 74 66 100" fill="none"'
    return (
        '<svg class="way" viewBox="0 0 132 100" width="0" height="0" preserveAspectRatio="none" '
        f'aria-hidden="true" focusable="false"><path {path_data}/>'
        f'<path class="middle" {path_data}/></svg>'
    )


def item(one: Milestone, left: bool) -> str:
    number = re.match(r"\d\d", one.stem)
    straight = ' class="straight"' if one.stem in STRAIGHT else ""
    further = ""
    if (CHAPTERS / f"{one.stem}_further.ipynb").exists():
        further = f' · <a class="behind" href="{one.stem}_further.ipynb">Further</a>'
    return f"""\
<li data-chapter="{one.stem}"{straight}>{path_segment(left)}
<span class="stone" aria-hidden="true">{number[0] if number else "+"}</span>
<div class="milestone">
<h4>{number[0] + " " if number else ""}<a href="{one.stem}.ipynb">{escape(one.title)}</a></h4>
<p class="asks">{escape(one.question)}</p>
<p class="fails"><b>Before:</b> {escape(one.before)}.</p>
<p class="cures"><b>Cure:</b> {escape(one.cure)}.</p>
<p class="takes"><span data-minutes="{one.stem}"></span>{further}</p></div>
</li>"""


@dataclass(frozen=True)
class Road:
    """A list of milestones for each part of the course."""

    def _repr_html_(self) -> str:
        lines = ['<div class="the-road">']
        for part, some in ROAD.items():
            items = map(item, some, SIDES)
            lines += [f"<h3>{part}</h3>", '<ol class="road" role="list">', *items, "</ol>"]
        return "\n".join([*lines, "</div>"])

    def __repr__(self) -> str:
        return "\n".join(f"{one.stem}: {one.question}" for one in milestones())


def road() -> Road:
    """The course as a road, one milestone for each chapter."""
    return Road()
