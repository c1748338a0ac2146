"""The end of the road, as it was recorded: what six models make of one line, and four changes.

whole_road()        a line, and what each model of the course makes of it, the real one last
whole_road(1)       another line, with which all of them fail; all that the real one wrote
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

ROWS = {
    "gru": ("02_seq2seq", "Sequence to sequence", "translates, from 120 numbers"),
    "attention": ("05_seq2seq_attention", "With attention", "translates, attending to every word"),
    "transformer": ("10_transformer", "Transformer", "translates, has read 155\u202f972 pairs"),
    "pairs": ("12_gpt", "Counts of pairs", "goes on, from the last word only"),
    "gpt": ("12_gpt", "GPT", "goes on, has read 180\u202f000 stories"),
    "real": ("16_real_model", "The real model", "answers, has read much of the web"),
}
"""By their keys among the results, the models: chapter, name, and what each one does."""
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
    """A line, and by model what was written; a page shows it as stops on the road."""

    line: str
    models: Mapping[str, list[Mapping[str, Any]]]
    answered: bool = False  # of the real model only its answer to a question
    note: str = ""

    def __repr__(self) -> str:
        lines = [f"“{self.line}”"]
        for key, (stem, name, does) in ROWS.items():
            texts = (" ".join(filter(None, self.parts(one))) for one in self.shown(key))
            lines += [f"{stem[:2]} {name} {does}", *(f"   {text}" for text in texts)]
        return "\n".join([*lines, *filter(None, [self.note])])

    def _repr_html_(self) -> str:
        head = f'<p class="result">“{escape(self.line)}”</p>'
        note = f"\n<p>{escape(self.note)}</p>" if self.note else ""
        rows = '<ol role="list">\n' + "\n".join(map(self.item, ROWS)) + "\n</ol>"
        return f'<div class="whole-road">\n{head}\n{rows}{note}\n</div>'

    def shown(self, key: str) -> list[Mapping[str, Any]]:
        """What that model wrote, as far as it is shown."""
        some = self.models[key]
        if key != "real" or not self.answered:
            return some
        return [one for one in some if one["asked"] and "gloss" not in one]

    def item(self, key: str) -> str:
        stem, name, does = ROWS[key]
        results = ""
        for one in self.shown(key):
            asked, text, after = map(escape, self.parts(one))
            language = ' lang="fr"' if "gloss" in one else ""
            results += f'\n<p>{asked} <b class="result"{language}>{text}</b> {after}</p>'
        link = f'<a href="{self.address(key)}">{stem[:2]} {name}</a>'
        return f"<li><p>{link} <small>{does}</small></p>{results}</li>"

    def parts(self, one: Mapping[str, Any]) -> tuple[str, str, str]:
        """What was asked, what was written, and, of a translation, what it means in English."""
        asked = f"“{one['asked'].replace(self.line, '…')}” →" if one.get("asked") else ""
        if "gloss" in one:
            return asked, one["text"], f"{'✓' if one['right'] else '✗ wrong:'} “{one['gloss']}”"
        return asked, one["text"] if one["ended"] else f"{one['text']} …", ""

    def address(self, key: str) -> str:
        """The chapter; if its widget takes a line, with this one, as live/ui/links.js reads it."""
        page = f"{ROWS[key][0]}.ipynb"
        if key not in INPUTS:
            return page
        widget, name, others = INPUTS[key]
        state = {"inputs": {name: self.line, **others}, "generator": 2}
        if key == "real":
            state["view"] = {"mode": 1}  # a chat
        code = urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
        return f"{page}#live-{widget}={code}"


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
        f"The chapter’s line was chosen: of {of} in its form, chapter 02’s translator gets "
        f"{right['gru']} right, chapter 05’s {right['attention']}, and chapter 10’s "
        f"{right['transformer']}. A Transformer that was trained on the sentences of 02 and 05 "
        f"gets {right['control']} right, so the data count, too."
    )
    return WholeRoad(**figures["lines"][number], answered=not number, note=note if number else "")


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
