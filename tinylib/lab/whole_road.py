"""The end of the road, as it was recorded: what six models make of one line, and four changes.

whole_road()        a line, and what each model of the course makes of it, the real one last
whole_road(1)       another line, with which all of them fail
four_changes()      what each change since GPT-2 gains in a tiny model

`python -m tinylib.lab.recipes whole-road` and `… llama-parts` record them.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from tinylib.lab.models.smollm2_tokens import SYSTEM
from tinylib.lab.table import Table, as_table
from tinylib.lab.train import weights

LIST = "list-style: none; padding-left: 0; text-align: left"
ROW = "display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0; padding: 0.5rem 0; border-top: 1px "
ROW += "solid var(--pst-color-border, currentcolor)"
NAME, RESULT = "flex: 1 1 9rem", "flex: 4 1 18rem; min-width: 0"  # one below the other on a phone


ROWS = {
    "pairs": ("12_gpt", "Counts of pairs"),
    "gru": ("02_seq2seq", "Sequence to sequence"),
    "attention": ("05_seq2seq_attention", "With attention"),
    "transformer": ("10_transformer", "Transformer"),
    "gpt": ("12_gpt", "GPT"),
    "real": ("16_real_model", "The real model"),
}
"""By their keys among the results, the models in the order of the road: chapter and name."""
ABOUT = {
    "pairs": "A language model, which goes on: its table knows only which word most often follows "
    "the last one in our stories.",
    "gru": "A translator, trained on 20\u202f000 sentences of a grammar: it packs the line into "
    "120 numbers, and writes French out of these alone.",
    "attention": "A translator, trained on the same sentences: before each French word it attends "
    "to the English words again.",
    "transformer": "A translator, trained on 155\u202f972 pairs of sentences that people wrote: "
    "that counts, too, for a Transformer that was trained on the grammar's gets this line wrong.",
    "gpt": "A language model, which goes on: it has read 20\u202f000 of our stories, and knows 58 "
    "words and signs.",
    "real": "A language model, too, with 135 million parameters: it has read much of the web, "
    "mostly in English, and then dialogues, so that it goes on, and answers in a chat, but hardly "
    "knows French.",
}
INPUTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gru": ("seq2seq", "source", {"forced": []}),
    "attention": ("seq2seq_attention", "source", {}),
    "transformer": ("transformer", "source", {"start": [], "width": 1, "alpha": 1}),
    "gpt": ("gpt", "story", {"prompt": "ROMEO:\n", "variant": 1}),
    "real": ("real_model", "text", {"system": SYSTEM, "temperature": 0, "p": 0.9, "seed": 1}),
}
"""The widget that takes a line, which of its inputs that is, and the others."""


@dataclass(frozen=True)
class WholeRoad:
    """A line, and by model what was written; a page shows it as a list of links and sentences."""

    line: str
    models: Mapping[str, list[Mapping[str, Any]]]
    note: str = ""

    def __repr__(self) -> str:
        lines = [f"“{self.line}”"]
        for key, (stem, name) in ROWS.items():
            texts = (" ".join(filter(None, self.parts(one))) for one in self.models[key])
            lines += [f"{stem[:2]} {name}", *(f"   {text}" for text in texts)]
        return "\n".join([*lines, *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        head = f"<p>“<b>{escape(self.line)}</b>”, and what each model of the road makes of it:</p>"
        note = f"\n<p>{escape(self.note)}</p>" if self.note else ""
        rows = f'<ol role="list" style="{LIST}">\n' + "\n".join(map(self.item, ROWS)) + "\n</ol>"
        return f'<div class="whole-road">\n{head}\n{rows}{note}\n</div>'

    def item(self, key: str) -> str:
        (stem, name), about = ROWS[key], escape(ABOUT[key])
        if key in INPUTS:
            label = f"Try a line of your own in chapter {stem[:2]}"
            about += f' <a href="{self.address(key)}">{label}</a>.'
        results = ""
        for one in self.models[key]:
            asked, text, after = map(escape, self.parts(one))
            language = ' lang="fr"' if "gloss" in one else ""
            results += f"<p>{asked} <b{language}>{text}</b> {after}</p>"
        head = f'<p style="{NAME}"><a href="{stem}.ipynb">{stem[:2]} {name}</a></p>'
        body = f'<div style="{RESULT}">{results}<p>{about}</p></div>'
        return f'<li style="{ROW}">{head}\n{body}</li>'

    def parts(self, one: Mapping[str, Any]) -> tuple[str, str, str]:
        """What was asked, what was written, and, of a translation, what it means in English."""
        asked = f"“{one['asked'].replace(self.line, '…')}” →" if one.get("asked") else ""
        if "gloss" in one:
            return asked, one["text"], f"{'✓' if one['right'] else '✗ wrong:'} “{one['gloss']}”"
        return asked, one["text"] if one["ended"] else f"{one['text']} …", ""

    def address(self, key: str) -> str:
        """A link to the chapter's widget with the line in it, as tinylib/live/ui/links.js reads."""
        widget, name, others = INPUTS[key]
        state = json.dumps({"inputs": {name: self.line, **others}, "generator": 2})
        code = urlsafe_b64encode(state.encode()).decode().rstrip("=")
        return f"{ROWS[key][0]}.ipynb#live-{widget}={code}"


def recorded(name: str) -> dict[str, Any]:
    try:
        figures: dict[str, Any] = weights.results(name)["figures"]
    except LookupError:
        raise LookupError(f"nothing is recorded: `python -m tinylib.lab.recipes {name}`") from None
    return figures


def whole_road(number: int = 0) -> WholeRoad:
    """What was recorded of the line of that number, 0 or 1.

    IndexError if there is no such line, LookupError if nothing was recorded yet.
    """
    figures = recorded("whole-road")
    if not 0 <= number < (count := len(figures["lines"])):
        raise IndexError(f"line {number}: {count} lines are recorded, 0 to {count - 1}")
    of, right = figures["of_this_form"]["lines"], figures["of_this_form"]["right"]
    note = (
        f"This line was chosen: of {of} in its form, chapter 02's translator gets {right['gru']} "
        f"right, chapter 05's {right['attention']}, and chapter 10's {right['transformer']}."
    )
    return WholeRoad(**figures["lines"][number], note="" if number else note)


def four_changes() -> Table:
    """Held-out loss, parameters and cache of tiny models with each change since GPT-2, and all.

    LookupError if nothing was recorded yet.
    """
    figures = recorded("llama-parts")
    rows = [
        (
            part,
            one["loss"],
            max(one["losses"]) - min(one["losses"]),
            one["parameters"],
            one["cache_bytes"],
        )
        for part, one in figures["parts"].items()
    ]
    title = f"Two blocks, 64 wide, after {figures['steps']} steps on our stories' characters"
    heads = ["changed", "held-out loss", "its spread", "parameters", "cache, bytes a token"]
    return as_table(title, heads, rows, [".3f", ".3f", ",", ","])
