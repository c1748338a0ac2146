"""Write the two pages for looking up, chapters/formulas.md and chapters/glossary.md.

    make reference                         both
    python tests/reference.py --check      change nothing; say which page is out of date

The formulas are made of the docstrings of the concept modules. A function comes onto the page if
its docstring begins with a formula or if it has a name in `NAMES`, and the chapter to which it
belongs is the one that shows its code, so that nobody edits the page.

The glossary is written by hand. Here its terms are sorted, and links to chapters are completed: to
name a term's chapter, write `Chapter seq2seq.`, or a stem in the place of another one.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from refresh import ROOT, course_version, repository_url, write

CHAPTERS = ROOT / "chapters"
FORMULAS, GLOSSARY = CHAPTERS / "formulas.md", CHAPTERS / "glossary.md"

# What the formulas are called in the field: somebody who looks for one types this.
NAMES = {
    "encoder_decoder.embed": "Embedding (a row of a table)",
    "encoder_decoder.recurrent_step": "Recurrent step (simple RNN, Elman network)",
    "encoder_decoder.EncoderDecoder": "Encoder–decoder (probability of a sentence)",
    "seq2seq.gru_step": "Gated recurrent unit (GRU)",
    "seq2seq.masked_loss": "Masked cross-entropy loss",
    "seq2seq.negative_log_likelihood": "Cross-entropy (negative log-likelihood)",
    "decoding.greedy": "Greedy search (greedy decoding)",
    "decoding.extend": "Beam search with length penalty",
    "bleu.precision": "Modified n-gram precision",
    "bleu.brevity_penalty": "Brevity penalty",
    "bleu.bleu": "BLEU",
    "bleu.bleu_d2l": "BLEU as in Dive into Deep Learning",
    "attention_scoring.gaussian": "Gaussian kernel",
    "attention_scoring.boxcar": "Boxcar kernel (uniform kernel)",
    "attention_scoring.epanechnikov": "Epanechnikov kernel",
    "attention_scoring.constant": "Constant kernel",
    "attention_scoring.kernel_weights": "Kernel regression (Nadaraya–Watson)",
    "attention_scoring.additive_score": "Additive attention score (Bahdanau attention)",
    "attention_scoring.dot_score": "Dot-product attention score (Luong attention)",
    "attention_scoring.scaled_dot_score": "Scaled dot-product attention score",
    "attention_scoring.length_mask": "Padding mask (valid lengths)",
    "attention_scoring.masked_softmax": "Masked softmax",
    "attention_scoring.attend": "Attention (weighted sum of the values)",
    "seq2seq_attention.AttentionDecoder": "Context vector (Bahdanau attention)",
    "self_attention.self_attention": "Scaled dot-product attention (self-attention)",
    "self_attention.causal_mask": "Causal mask (look-ahead mask)",
    "positional_encoding.angles": "Angles of positional encoding",
    "positional_encoding.sinusoidal": "Sinusoidal positional encoding",
    "positional_encoding.shift_matrix": "Rotation of sinusoidal codes (relative positions)",
    "positional_encoding.LearnedPositions": "Learned positional embedding",
    "positional_encoding.rotate": "Rotation of pairs of entries",
    "positional_encoding.rotary": "Rotary positional embedding (RoPE)",
    "positional_encoding.alibi_bias": "ALiBi (attention with linear biases)",
    "multi_head_attention.split_heads": "Splitting a row into heads",
    "multi_head_attention.multi_head_attention": "Multi-head attention between the projections",
    "multi_head_attention.MultiHeadAttention": "Multi-head attention",
    "attention_cost.parameters": "Number of parameters of multi-head attention",
    "synthesizer.dense_score": "Scores of the dense synthesizer",
    "synthesizer.DenseSynthesizer": "Dense synthesizer",
    "synthesizer.parameters": "Number of parameters of the dense synthesizer",
    "normalization.layer_norm": "Layer normalisation (layer normalization, LayerNorm)",
    "normalization.rms_norm": "Root mean square layer normalisation (RMSNorm)",
    "feed_forward.gelu": "GELU (Gaussian error linear unit)",
    "feed_forward.gelu_tanh": "GELU, approximated by tanh",
    "feed_forward.FeedForward": "Position-wise feed-forward network",
    "transformer_block.AddNorm": "Residual connection with post-norm or pre-norm",
    "transformer.Embedding": "Scaled embedding with positional encoding",
    "tokens.naive_learn": "Byte-pair encoding (BPE)",
    "tokens.bits_per_byte": "Bits per byte",
    "gpt.Block": "GPT block (pre-norm Transformer block)",
    "gpt.GPT": "GPT (autoregressive language model)",
    "gpt.next_token_loss": "Next-token loss and perplexity",
    "inside_gpt.Stream": "Residual stream (sum of all parts)",
    "inside_gpt.logit_lens": "Logit lens",
    "inside_gpt.contributions": "Direct contribution to a logit (direct logit attribution)",
    "inside_gpt.recovered": "Effect of a patch on the logit difference",
    "induction.previous_token_score": "Previous-token score of a head",
    "induction.induction_score": "Induction score of a head (prefix matching)",
    "generation.apply_temperature": "Temperature of a softmax",
    "generation.top_k": "Top-k sampling",
    "generation.top_p": "Top-p (nucleus) sampling",
    "generation.sample": "Inverse transform sampling",
    "kv_cache.KVCache": "KV cache",
    "speculative.acceptance": "Acceptance probability (speculative decoding)",
    "speculative.residual": "Residual distribution (speculative decoding)",
    "rolling_cache.RollingCache": "Rolling cache (attention sinks)",
    "quantisation.quantise": "Quantisation (absmax, int8)",
    "quantisation.dequantise": "Dequantisation",
    "real_model.SwiGLU": "SwiGLU (gated feed-forward network)",
    "real_model.GroupedQueryAttention": "Grouped-query attention (GQA)",
}

# All other public functions and classes, and why they have no formula of their own.
WITHOUT = {
    "It holds what functions take or return.": """
        decoding.Decoded decoding.Hypotheses decoding.Extended decoding.Beams bleu.Counts
        seq2seq.Encoding seq2seq.GRUState attention_scoring.Attended attention_cost.Flops
        seq2seq_attention.Annotations seq2seq_attention.AttentionState
        kv_cache.ReservedCache kv_cache.Cache transformer_block.TransformerConfig transformer.Memory
        transformer.TransformerState gpt.GPTConfig generation.Sampling real_model.LlamaConfig
        speculative.Speculated""",
    "It gives a function of the page its parameters.": """
        encoder_decoder.TokenEmbedding attention_scoring.AdditiveScore self_attention.SelfAttention
        normalization.LayerNorm normalization.RMSNorm""",
    "It is a network that formulas of the page make up.": """
        encoder_decoder.Encoder encoder_decoder.Decoder encoder_decoder.RecurrentEncoder
        encoder_decoder.RecurrentDecoder seq2seq.GRUEncoder seq2seq.GRUDecoder seq2seq.Seq2Seq
        seq2seq_attention.BidirectionalEncoder seq2seq_attention.AttentionSeq2Seq
        positional_encoding.PositionalAttention transformer_block.EncoderBlock
        transformer_block.DecoderBlock transformer_block.attention transformer.stack
        transformer.last_norm transformer.TransformerEncoder transformer.TransformerDecoder
        transformer.Transformer real_model.LlamaBlock real_model.Llama
        quantisation.Int8Linear quantisation.smaller""",
    "It repeats a step of the page until a text has ended.": """
        decoding.beam generation.choose_next generation.generate generation.beam_search
        speculative.verify speculative.speculate rolling_cache.write_on""",
    "It computes a formula of the page faster, or on other inputs.": """
        bleu.sentence_bleu bleu.corpus_bleu seq2seq.read_packed seq2seq.teacher_forcing
        self_attention.causal_and fast_attention.fused_attend fast_attention.short_causal_attend
        fast_attention.fast_attend multi_head_attention.fast_multi_head_attention
        multi_head_attention.broadcast_over_heads multi_head_attention.apply_head_mask
        multi_head_attention.merge_heads tokens.learn_merges fast_merges.merge_all
        fast_modules.fast_modules fast_modules.fast_rms_norm fast_modules.fast_product
        fast_modules.fast_norm fast_modules.fast_block fast_rotation.rotation""",
    "It counts, gathers or reserves.": """
        bleu.ngrams bleu.is_ngram bleu.ngram_matches bleu.count bleu.ngram_counts
        tokens.split tokens.to_bytes tokens.from_bytes tokens.merge tokens.count_pairs
        tokens.BytePairs attention_cost.flops synthesizer.flops decoding.choose
        decoding.first_tokens decoding.next_step decoding.at_least_float32
        kv_cache.reserve_caches fast_merges.Row encoder_decoder.on_accelerator
        inside_gpt.read_stream induction.induction_places real_model.share_heads
        speculative.CachedReader speculative.reader_of rolling_cache.rolling_caches""",
    "It names a vector inside a model, or puts another one there.": """
        inside_gpt.Site inside_gpt.stream_site inside_gpt.head_site inside_gpt.patch_from
        inside_gpt.ablate inside_gpt.replaced hooks""",
    "It checks arguments.": "checks gpt.check real_model.check",
}

# The test that says most about a formula, where it is not the one that `test_of` would choose.
TESTS = {
    "encoder_decoder.EncoderDecoder": "test_encoder_decoder.py::test_step_by_step_is_all_at_once",
    "seq2seq.negative_log_likelihood": "test_gpt.py::test_the_loss_of_two_words_by_hand",
    "decoding.extend": "test_decoding.py::test_a_beam_that_keeps_everything_is_exhaustive",
    "attention_scoring.masked_softmax": (
        "test_attention_scoring.py::test_masks_of_every_shape_forwards_and_backwards"
    ),
    "seq2seq_attention.AttentionDecoder": (
        "test_seq2seq_attention.py::test_the_decoder_is_a_loop_over_words"
    ),
    "positional_encoding.alibi_bias": (
        "test_positional_encoding.py::test_the_slopes_of_eight_heads_are_those_of_the_paper"
    ),
    "positional_encoding.shift_matrix": (
        "test_positional_encoding.py::test_a_step_of_delta_is_one_rotation_wherever_it_starts"
    ),
    "multi_head_attention.split_heads": (
        "test_multi_head_attention.py::test_where_every_number_goes"
    ),
    "multi_head_attention.MultiHeadAttention": (
        "test_multi_head_attention.py::test_it_is_torchs_module"
    ),
    "synthesizer.DenseSynthesizer": "test_synthesizer.py::test_it_is_the_formula_spelled_out",
    "transformer_block.AddNorm": "test_transformer_block.py::test_where_the_norm_stands",
    "transformer.Embedding": "test_transformer.py::test_an_embedding_is_scaled_and_knows_its_place",
    "gpt.GPT": "test_gpt.py::test_it_is_transformers_gpt2",
    "inside_gpt.Stream": "test_inside_gpt.py::test_the_stream_is_the_sum_of_its_parts",
    "gpt.next_token_loss": "test_gpt.py::test_the_loss_is_that_of_the_next_tokens",
    "generation.apply_temperature": "test_generation.py::test_temperature_divides_the_logits",
    "speculative.acceptance": "test_speculative.py::test_both_tokens_come_as_the_model_says",
    "speculative.residual": "test_speculative.py::test_both_tokens_come_as_the_model_says",
    "rolling_cache.RollingCache": (
        "test_rolling_cache.py::test_the_first_tokens_stay_and_of_the_others_the_newest"
    ),
}

MATH = r"\$[^$]+\$"
LEADING = re.compile(
    rf"{MATH}(?:(?:, | for |, then |, with |, else ){MATH})*(?=[.,:;]| \(| for | in )"
)
LEADING_CODE = re.compile(r"``([^`]+)``(?=[.,:;])")
PIECES = re.compile(rf"(?P<math>{MATH})|``(?P<code>[^`]+)``|:\w+:`(?P<role>[^`]+)`")
PERSON = r"[A-Z][\w'’-]+"
CITATION = (
    rf"{PERSON}(?: and {PERSON}| et al\.)? (?:19|20)\d\d"
    r"(?:, (?:(?:section|eq\.|figure|table) )?(?=[\w.]*\d)[\w.]*\w)*"
)
BETWEEN = r"\$(,?) (?:(for|then|with|else) )?\$([^$]+)(?=\$)"
ERROR = r"(?:Value|Type)Error"
# On GitHub, Markdown takes the backslash away from these where they stand in a line of text.
IN_A_LINE = {r"\,": r"\thinspace ", r"\{": r"\lbrace ", r"\}": r"\rbrace ", r"\|": r"\Vert "}


class Formula(NamedTuple):
    """A public function or class whose docstring holds a formula."""

    module: str
    function: str
    line: int
    text: str  # the docstring

    @property
    def key(self) -> str:
        return f"{self.module}.{self.function}"

    @property
    def name(self) -> str:
        """Its standard name; for want of one, its function's, which a test does not accept."""
        return NAMES.get(self.key) or self.function.replace("_", " ")


# --- what the chapters and the tests say -------------------------------------------------------


@cache
def chapters() -> dict[str, Path]:
    """The chapter of each stem, in the order of the book; the page behind it comes with it."""
    paths = sorted(path for path in CHAPTERS.glob("*.ipynb") if not path.stem.endswith("_further"))
    return {re.sub(r"^\d\d_", "", path.stem): path for path in paths}


@cache
def every_cell(stem: str) -> list[dict[str, Any]]:
    """The cells of the chapter and of the page behind it, if there is one."""
    core = chapters()[stem]
    both = [path for path in (core, core.with_stem(f"{core.stem}_further")) if path.exists()]
    return [cell for path in both for cell in json.loads(path.read_text("utf-8"))["cells"]]


@cache
def cells(stem: str, kind: str) -> str:
    """The text of the cells of this kind, of the chapter and of the page behind it."""
    found = (cell for cell in every_cell(stem) if cell["cell_type"] == kind)
    return "\n\n".join("".join(cell["source"]) for cell in found)


def link(stem: str) -> str:
    """The chapter by number and title, as [06 Self-attention](06_self_attention.ipynb)."""
    path = chapters()[stem]
    number = re.match(r"\d\d_", path.name)
    title = re.findall(r"^# (.+)", cells(stem, "markdown"), flags=re.M)[0]
    return f"[{f'{number[0][:2]} ' if number else ''}{title}]({path.name})"


@cache
def page_text(path: Path) -> str:
    """All words of a page's cells, in lower case."""
    found = json.loads(path.read_text("utf-8"))["cells"]
    return f" {alphabetical(' '.join(''.join(cell['source']) for cell in found))}"


def link_to_term(stem: str, names: Sequence[str]) -> str:
    """The chapter, or the page behind it if only that one says one of these names."""
    core = chapters()[stem]
    behind = core.with_stem(f"{core.stem}_further")
    said = [
        path
        for path in (core, behind)
        if path.exists() and any(f" {alphabetical(name)}" in page_text(path) for name in names)
    ]
    if said != [behind]:
        return link(stem)
    return link(stem).replace("](", ", Further](").replace(core.name, behind.name)


@cache
def shown(stem: str) -> str:
    """What the chapter gives to `show`, which prints the source of functions."""
    return " ".join(re.findall(r"\bshow\((.*?)\)", cells(stem, "code"), flags=re.S))


def shows(stem: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){name}\b", shown(stem)) is not None


def imports(stem: str, module: str, name: str) -> bool:
    lists = rf"from tinylib\.{module} import (\([^)]*\)|.*)"
    return any(
        name in re.findall(r"\w+", names) for names in re.findall(lists, cells(stem, "code"))
    )


@cache
def chapter_of(formula: Formula) -> str | None:
    """The stem of the chapter that shows the function's code; else of one that uses it, which
    should rather be one that shows other code of its module."""
    siblings = [name for name, *_ in public(formula.module)]
    showing = [stem for stem in chapters() if any(shows(stem, name) for name in siblings)]
    using = [stem for stem in chapters() if imports(stem, formula.module, formula.function)]
    own = [stem for stem in chapters() if shows(stem, formula.function)]
    both = [stem for stem in using if stem in showing]
    module = f"tinylib.{formula.module} import"
    named = [s for s in chapters() if s == formula.module or module in cells(s, "code")]
    return next(iter([*own, *both, *using, *showing, *named]), None)


@cache
def tests() -> dict[str, dict[str, set[str]]]:
    """Of each file of tests, the names of its tests, and of each test the names in its code."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted((ROOT / "tests/concepts").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                found.setdefault(path.name, {})[node.name] = names
    return found


def test_of(formula: Formula) -> tuple[str, str] | None:
    """The file and the name of the test that tells most about the function: one of its module's
    tests, done by hand or named after the function, if there is such a one."""
    if formula.key in TESTS:
        file, _, test = TESTS[formula.key].partition("::")
        return file, test
    own = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", formula.function).lower()
    weights = {"by_hand": 4, f"test_{own}": 1, own: 2, "formula": 1, "torchs": 1, "refused": -3}

    def rank(test: str) -> int:
        return -sum(weight for words, weight in weights.items() if words in test)

    file = f"test_{formula.module}.py"
    here = [test for test, names in tests()[file].items() if formula.function in names]
    return (file, min(here, key=rank)) if here else None


# --- from a docstring to the page --------------------------------------------------------------


@cache
def public(module: str) -> list[tuple[str, int, str]]:
    """The module's public functions and classes, each with its line and its docstring."""
    tree = ast.parse((ROOT / "tinylib" / f"{module}.py").read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [
        (node.name, node.lineno, ast.get_docstring(node) or "")
        for node in found
        if not node.name.startswith("_")
    ]


def modules() -> list[str]:
    """The concept modules."""
    return sorted(path.stem for path in (ROOT / "tinylib").glob("[a-z]*.py"))


def without() -> dict[str, str]:
    """Of each function that has no formula, and of whole modules, the reason."""
    return {key: reason for reason, keys in WITHOUT.items() for key in keys.split()}


def formulas() -> list[Formula]:
    """All formulas: by chapter, there in the order in which its code names the modules."""
    every = [Formula(module, *found) for module in modules() for found in public(module)]
    begin = [one for one in every if LEADING.match(one.text) and one.key not in without()]
    order = list(chapters())

    def place(formula: Formula) -> tuple[int, int, int]:
        stem = chapter_of(formula)
        code = cells(stem, "code") if stem else ""
        return order.index(stem) if stem else 99, code.find(f".{formula.module} "), formula.line

    return sorted((one for one in every if one.key in NAMES or one in begin), key=place)


def citations(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(CITATION, " ".join(text.split()))))


@cache
def papers() -> list[tuple[str, list[str], str, str]]:
    """What the chapters list under Papers: stem, the authors' last names, year, title."""
    found = []
    for stem in chapters():
        _, _, section = cells(stem, "markdown").partition("\n## Papers\n")
        entry = r"(?:^- |; )([^:;*\n]+): \[?\*([^*]+)\*(?:\]\([^)\s]*\))?, (\d{4})"  # linked or not
        for authors, title, year in re.findall(entry, section, flags=re.M):
            names = [author.split()[-1] for author in re.split(r", | and ", authors)]
            found.append((stem, names, year, title))
    return found


def titled(citation: str, stem: str | None) -> str:
    """The citation with its title, where a chapter lists it: this chapter, if possible."""
    who, year = re.findall(r"[A-Z]\S+", citation.split(",")[0]), re.findall(r"\d{4}", citation)[0]
    titles: dict[str, str] = {}
    for of, names, when, title in papers():
        # Of two authors both are named; "and others" and "et al." stand for the rest.
        if when == year and names[0] == who[0] and ("et al" in citation or {*who} <= {*names}):
            titles.setdefault(of, title)
    found = [titles[stem]] if stem in titles else [*titles.values()]
    return f"{citation}: *{found[0]}*" if found else citation


def markdown(text: str) -> str:
    """A docstring's text as Markdown that GitHub and the site show alike."""

    def plain(text: str) -> str:
        text = re.sub(r"([*_<\[\]])", r"\\\1", text)
        return re.sub(r"\\\*(\w+)\\\*", r"*\1*", text)  # a word that is stressed stays so

    done, end = "", 0
    for piece in PIECES.finditer(text):
        done += plain(text[end : piece.start()])
        if piece["math"]:
            maths = re.sub(r"\\[,{}|]", lambda sign: IN_A_LINE[sign[0]], piece["math"])
            done += re.sub(r" (?=[^a-zA-Z])", "", maths) if maths != piece["math"] else maths
        else:
            done += f"`{piece['code'] or piece['role'].rpartition('.')[2]}`"
        end = piece.end()
    return done + plain(text[end:])


def split(text: str) -> tuple[str, str]:
    """The formula with which a docstring begins, as a block of Markdown, and the other words.

    Sources stand below with their titles, and errors are of no use here: both are left out.
    """
    text = re.sub(r"(?<!\n)\n *(?!\n)", " ", text)
    text = re.sub(rf" \({CITATION}[^()$]*\)", "", text, count=1)
    text = re.sub(rf"(\A|\n\n){CITATION}(?:; {CITATION})*\.(?:\s+|\Z)", r"\1", text)
    text = re.sub(rf" \({ERROR}[^)]*\)", "", text)
    text = re.sub(rf"[;:] {ERROR}[^.]*\.", ".", text)
    text = re.sub(rf"\s*\b{ERROR}[^.]*\.", "", text)
    block = ""
    if leading := LEADING.match(text):
        block = f"```math\n{re.sub(BETWEEN, joined, leading[0]).strip('$')}\n```"
    elif leading := LEADING_CODE.match(text):
        block = f"```python\n{leading[1]}\n```"
    words = text[leading.end() :].lstrip(" .,:;") if leading else text
    if leading and re.match(r"(a|[a-z]{2,})\b", words):
        words = words[0].upper() + words[1:]
    return block, " ".join(words.split())


def joined(between: re.Match[str]) -> str:
    """What stands between two formulas that become one, and the second, which may be negative."""
    comma, word, maths = between.groups()
    word = rf"\quad\text{{{word}}}" if word else ""
    return rf"{comma}{word}\quad " + (f"{{{maths}}}" if maths[0] == "-" else maths)


SIZES = {"T": 4, "S": 5, "D": 6, "F": 9, "V": 8, "H": 2, "d_k": 3, "d_v": 3}  # of drawn axes
FIRST_SENTENCE = re.compile(r".*?[.](?= [A-Z$`]|$)")


def axes(annotation: ast.expr | None) -> list[str] | None:
    """The axes of a tensor, as its annotation names them, without those of the batch."""
    for node in ast.walk(annotation) if annotation else ():
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "..." not in node.value
        ):
            names = [re.sub(r"[{}*]", "", one) for one in node.value.split()]
            return [re.sub(r"^H(?=.)", "H·", one) for one in names if one[0] != "B"]
    return None


@cache
def defined() -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Every function and class of the concept modules, by its module and name."""
    return {
        f"{module}.{node.name}": node
        for module in modules()
        for node in ast.parse((ROOT / f"tinylib/{module}.py").read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def shapes(formula: Formula) -> str:
    """A picture of what goes in and what comes out: a box for each tensor, with its axes."""
    node = defined().get(formula.key)
    if node is None:
        return ""
    if isinstance(node, ast.ClassDef):
        methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        node = next((one for one in methods if one.name in ("forward", "append")), methods[0])
    inputs = [(one.arg, axes(one.annotation)) for one in [*node.args.args, *node.args.kwonlyargs]]
    output = axes(node.returns)
    if output is None and isinstance(node.returns, ast.Name):  # a tuple: its first tensor
        kind = next(
            (one for key, one in defined().items() if key.endswith(f".{node.returns.id}")), None
        )
        fields = [one for one in getattr(kind, "body", []) if isinstance(one, ast.AnnAssign)]
        output = next(filter(None, (axes(one.annotation) for one in fields)), None)
    boxes = [box(name, found) for name, found in inputs if found]
    if not boxes or output is None:
        return ""
    return f'<p class="shapes">{" ".join(boxes)} → {box("", output)}</p>'


def box(name: str, found: Sequence[str]) -> str:
    columns, rows, *_ = (*(SIZES.get(one, 4) for one in reversed(found)), 1, 1)
    text = " × ".join(found) or "one number"
    drawn = f'<i style="width:{columns}em;height:{rows}em"></i>'
    return f"<span>{drawn}{f'<b>{name}</b> ' if name else ''}{text}</span>"


def entry(formula: Formula, url: str) -> Iterator[str]:
    """The lines of the page about one formula: in one sentence, with its shapes and small links."""
    block, words = split(formula.text)
    yield from (f"### {formula.name}", "")
    yield from ([block, ""] if block else [])
    if sentence := FIRST_SENTENCE.match(words):
        yield from (markdown(sentence[0]), "")
    if picture := shapes(formula):
        yield from (picture, "")
    stem, test = chapter_of(formula), test_of(formula)
    where = f"{url}/tinylib/{formula.module}.py#L{formula.line}"
    links = [f"[`{formula.function}`]({where})", link(stem) if stem else ""]
    links += [titled(citation, stem) for citation in citations(formula.text)]
    if test:
        links.append(f"[`{test[1]}`]({url}/tests/concepts/{test[0]})")
    yield from (f"<small>{' · '.join(filter(None, links))}</small>", "")


HEAD = """\
# Formulas

Here is each formula of the course under the name by which the field knows it. The boxes show the
shapes of one sentence: what goes in, and what comes out. Below stand the function that computes it,
the chapter that explains it, its source and a test that holds it. The letters are those of
[the course's alphabet](notation.md), and the words are in the [glossary](glossary.md).

<!-- Written by `make reference` from the docstrings of tinylib: change those. -->
"""


def formulas_page() -> str:
    ref = "main" if "dev" in course_version() else f"v{course_version()}"
    url = f"{repository_url()}/blob/{ref}"
    lines = [HEAD]
    everything = formulas()
    for stem in [*chapters(), None]:
        here = [formula for formula in everything if chapter_of(formula) == stem]
        if here:
            title = re.findall(r"\[(.+)\]", link(stem))[0] if stem else "Elsewhere"
            lines += [f"## {title}", ""]
        for formula in here:
            lines += entry(formula, url)
    return "\n".join(lines).rstrip() + "\n"


# --- the glossary ------------------------------------------------------------------------------

ITS_CHAPTER = re.compile(
    r"^Chapter (?:\[[^\]]*\]\((?:\d\d_)?(\w+?)(?:_further)?\.ipynb\)|(\w+))\.", flags=re.M
)


def called(term: str, body: str) -> list[str]:
    """The term, and what else it is called in the same entry."""
    _, _, elsewhere = body.partition("Elsewhere: ")
    return [term, *(a or b for a, b in re.findall(r"\*([^*]+)\*|`([^`]+)`", elsewhere))]


def glossary_entries(text: str) -> dict[str, str]:
    """What the glossary says about each term, in the order in which it stands there."""
    parts = re.split(r"^### (.+)\n", text, flags=re.M)[1:]
    bodies = [re.sub(r"^## .*", "", body, flags=re.M).strip() for body in parts[1::2]]
    return dict(zip(parts[::2], bodies, strict=True))


def alphabetical(term: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", term.lower()).strip()


def glossary_page(text: str) -> str:
    """The glossary with its terms sorted under their letters, and its links completed."""

    def completed(term: str, body: str) -> str:
        found = ITS_CHAPTER.search(body)
        stem = found[1] or found[2] if found else ""
        if stem not in chapters():
            return body
        return ITS_CHAPTER.sub(f"Chapter {link_to_term(stem, called(term, body))}.", body)

    head = text.partition("\n## ")[0].rstrip()
    lines, letter = [head, ""], ""
    for term, body in sorted(
        glossary_entries(text).items(), key=lambda item: alphabetical(item[0])
    ):
        if (first := alphabetical(term)[0].upper()) != letter:
            letter = first
            lines += [f"## {letter}", ""]
        lines += [f"### {term}", "", completed(term, body), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, only check")
    only_check = parser.parse_args().check
    stored = {path: path.read_text(encoding="utf-8") for path in (FORMULAS, GLOSSARY)}
    fresh = {FORMULAS: formulas_page(), GLOSSARY: glossary_page(stored[GLOSSARY])}
    stale = [path for path in stored if stored[path] != fresh[path]]
    for path in stale:
        if not only_check:
            write(path, fresh[path])
        name = path.relative_to(ROOT)
        print(f"{name}: out of date; run `make reference`" if only_check else f"{name}: written")
    sys.exit(bool(stale) if only_check else 0)


if __name__ == "__main__":
    main()
