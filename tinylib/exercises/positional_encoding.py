"""The exercises of chapter 07: codes, rotations and biases that say where a word stands."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tinylib.attention_scoring import attend, scaled_dot_score
from tinylib.exercises import Exercise, rounded_normal
from tinylib.positional_encoding import angles, rotary, rotate, sinusoidal
from tinylib.self_attention import causal_mask

Decoder = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor]]
ScoreAt = Callable[[Tensor, Tensor, int], Tensor]


# Codes that are added --------------------------------------------------------------------


def _size_cases() -> Iterator[tuple[int, int, int]]:
    yield 2, 4, 0
    yield 3, 6, 5
    yield 5, 10, 2
    yield 2, 6, 100_000  # where float32 is no longer good enough


check_sinusoidal = Exercise(
    task="write `def answer(T, D, offset):` that gives the codes of T positions, T×D.",
    inputs=("T", "D", "offset"),
    cases=_size_cases,
    solution="""
    def answer(T, D, offset):
        i = offset + torch.arange(T, dtype=torch.float64)
        j = torch.arange(D // 2, dtype=torch.float64)
        theta = i[:, None] / 10_000 ** (2 * j / D)
        return torch.stack([theta.sin(), theta.cos()], dim=-1).flatten(1)
    """,
    insight="The hand that stands in columns 0 and 1 goes round once in about 6 positions, the "
    "slowest of a code 512 wide in about 60 000. So neighbours are told apart, and far places too.",
    slips="""
    offset + torch → torch
        The offset is not used: every piece of a text would begin at position 0 again.
    offset + torch → offset + 1 + torch
        Off by one: positions are counted from 0, so the first row is that of position `offset`.
    2 * j / D → j / D
        The exponent is j/D. It should be 2j/D: then the speeds are spread from 1 to nearly
        1/10 000, now only to 1/100.
    2 * j / D → 2 * j / (D // 2)
        You divided by the number of hands, D/2. The exponent is 2j/D: it stays below 1.
    i[:, None] / 10_000 → i[:, None] * 10_000
        You multiplied: each hand turns faster than the one before it. They should get slower.
    theta.sin(), theta.cos() → theta.cos(), theta.sin()
        Sine and cosine have changed places: the sine comes first, in the even columns.
    torch.stack([theta.sin(), theta.cos()], dim=-1) → torch.cat([theta.sin(), theta.cos()], -1)
    dim=-1 → dim=1
        All sines stand before all cosines. Here the two coordinates of a hand are neighbours:
        sin, cos, sin, cos, …
    i[:, None] / → 2 * torch.pi * i[:, None] /
        These are angles in whole rounds: the first hand would go round once at every position,
        and be back. Its angle is i, in radians.
    j = torch.arange(D // 2, dtype=torch.float64) → j = torch.arange(D // 2)
    i[:, None] / 10_000 ** (2 * j / D) → i.float()[:, None] / 1e4 ** (2 * j.float() / D)
        Right for short texts. But this is computed in float32, and at position 100 000 a small
        error in a speed has become a large one in the angle. Compute in float64.
    theta.sin(), theta.cos() → theta, theta
        These are the angles. The code holds their sines and cosines, between −1 and 1.
    """,
)


def _width_cases() -> Iterator[tuple[int]]:
    for D in (4, 2, 6, 8, 14):
        yield (D,)


check_columns = Exercise(
    task="write `def answer(D):` that gives the D numbers of the columns, in their new order.",
    inputs=("D",),
    cases=_width_cases,
    solution="""
    def answer(D):
        sines_and_cosines = torch.arange(D).view(2, -1)
        return sines_and_cosines.T.flatten()
    """,
    insight="A permutation of the columns changes no dot product, so both layouts are equally "
    "good. But weights that were trained with one need their rows permuted to serve the other.",
    slips="""
    view(2, -1) → view(-1, 2)
    .T.flatten() → .T.flatten().argsort()
        This is the other way, from sin, cos, sin, cos to all sines first. Entry n of `order` says
        which *old* column becomes column n. For D = 4 the two ways are the same, for D = 6 not.
    .T.flatten() → .flatten()
        Nothing has moved: in `p[:, order]` all sines still come first.
    .T.flatten() → .flip(0).T.flatten()
        The cosine of each hand comes before its sine: cos, sin, cos, sin.
    .T.flatten() → .T.flip(0).flatten()
        The hands stand in reverse, the slowest first. Keep them in their order.
    .T.flatten() → [[0, 0]].T.flatten()
        The sines are there twice, and no cosine at all: these stand in the second half.
    .T.flatten() → .T
    """,
)


def _learned_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = rounded_normal(52)
    for T, D, max_len, starts in (
        (2, 3, 5, [2]),
        (3, 2, 8, [0, 4]),
        (3, 5, 13, [1, 8, 3]),
        (5, 3, 11, [2, 0]),
    ):
        yield draw(len(starts), T, D), draw(max_len, D), torch.tensor(starts)


check_learned = Exercise(
    task="write `def answer(x, w_pos, starts):` that gives the words with their positions, B×T×D.",
    inputs=("x", "w_pos", "starts"),
    cases=_learned_cases,
    solution="""
    def answer(x, w_pos, starts):
        at = starts[:, None] + torch.arange(x.shape[1])
        return x + w_pos[at]
    """,
    insight="If all texts begin at 0, the same T rows serve the whole batch, and x + w_pos[:T] "
    "does it. The table ends somewhere, and so does every text.",
    slips="""
    w_pos[at] → w_pos[: x.shape[1]]
        Every piece begins at position 0 here. That is the mistake of many a decoder: it sees one
        word at a time, and takes each for the first.
    torch.arange(x.shape[1]) → torch.zeros_like(x[0, :, 0]).long()
        All words of a piece got the row of its first word. Each next word stands one further on.
    starts[:, None] → starts[0]
        All pieces begin where the first one does. Each has its own start.
    starts[:, None] → torch.arange(len(x))[:, None]
        You counted the pieces. Where piece b begins is `starts[b]`.
    starts[:, None] + → starts[:, None] + 1 +
        Off by one: the first word of piece b stands at `starts[b]` itself.
    starts[:, None] + → starts[:, None] -
        The positions run backwards. The next word stands one *further* on.
    x + w_pos → x * w_pos
        You multiplied. A code is added to the embedding.
    x + w_pos[at] → w_pos[at]
        These are the positions alone. Add them to the words.
    x + w_pos[at] → torch.cat([x, w_pos[at]], dim=-1)
        You set the two side by side, 2D wide. They are added, so the width stays D.
    starts[:, None] → starts
    """,
)


# Rotations -------------------------------------------------------------------------------


def _shift_cases() -> Iterator[tuple[Tensor, int]]:
    for D, i, delta in ((2, [3], 1), (4, [7, 2], 5), (6, [0, 19, 4], -3), (10, [11, 1], 30)):
        yield sinusoidal(20, D)[i], delta


check_shift = Exercise(
    task="write `def answer(p, delta):` that gives the codes δ positions further on, T×D.",
    inputs=("p", "delta"),
    cases=_shift_cases,
    solution="""
    def answer(p, delta):
        D = p.shape[1]
        theta = delta / 10_000 ** (torch.arange(0, D, 2) / D)
        sin, cos = p[:, 0::2], p[:, 1::2]
        new_sin = sin * theta.cos() + cos * theta.sin()
        new_cos = cos * theta.cos() - sin * theta.sin()
        return torch.stack([new_sin, new_cos], dim=-1).flatten(1)
    """,
    insight="You never learned where the rows stand: one and the same rotation R(δ) moves every "
    "position by δ. It is linear, so a layer could learn it.",
    slips="""
    theta = delta → theta = -delta
        You went back by δ: this is R(−δ), the transpose of R(δ).
    cos * theta.cos() - sin → cos * theta.cos() + sin
        The cosine of a sum has a minus: cos(α + β) = cos α cos β − sin α sin β.
    sin * theta.cos() + cos → sin * theta.cos() - cos
        The sine of a sum has a plus: sin(α + β) = sin α cos β + cos α sin β.
    p[:, 0::2], p[:, 1::2] → p[:, 1::2], p[:, 0::2]
        You read sines as cosines: the even columns are sines.
    p[:, 0::2], p[:, 1::2] → p.chunk(2, dim=1)
        You read `p` as all sines, then all cosines. Here sine and cosine of a hand are
        neighbours.
    torch.stack([new_sin, new_cos], dim=-1).flatten(1) → torch.cat([new_sin, new_cos], dim=-1)
        Read right, but written in another layout: sine and cosine of a hand are neighbours.
    torch.arange(0, D, 2) → torch.arange(D // 2)
        The exponent is j/D, but should be 2j/D: all hands after the first turn too fast.
    delta / 10_000 ** (torch.arange(0, D, 2) / D) → torch.full([D // 2], float(delta))
        All hands turned by the same angle, δ. Only the first one is so fast.
    sin * theta.cos() + cos * theta.sin() → sin + theta.sin()
        The sine of a sum is not the sum of the sines: sin(α + β) = sin α cos β + cos α sin β.
    [new_sin, new_cos] → [theta.sin().expand_as(sin), theta.cos().expand_as(cos)]
        This is the code of position δ in every row. δ counts from where a row stands, not from 0.
    """,
)


def _step_cases() -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    draw = rounded_normal(54)
    for S, k in ((3, 2), (2, 4), (5, 6), (11, 14)):
        yield draw(k), draw(S, k), draw(S, k)


check_rotary_step = Exercise(
    task="write `def answer(q, keys, values):` that gives the newest word's context vector.",
    inputs=("q", "keys", "values"),
    cases=_step_cases,
    solution="""
    def answer(q, keys, values):
        S, d_k = keys.shape
        speed = 10_000 ** (-torch.arange(0, d_k, 2) / d_k)
        theta = torch.arange(S)[:, None] * speed

        def turn(x, theta):
            a, b = x[..., 0::2], x[..., 1::2]
            cos, sin = theta.cos(), theta.sin()
            pairs = [a * cos - b * sin, a * sin + b * cos]
            return torch.stack(pairs, dim=-1).flatten(-2)

        scores = turn(keys, theta) @ turn(q, theta[-1]) / d_k**0.5
        return scores.softmax(-1) @ values
    """,
    insight="Turning q by t and k by s leaves one turn by t − s in each product: the distance "
    "alone. So a key is turned once, by its own position, and can be kept.",
    slips="""
    turn(q, theta[-1]) → turn(q, theta[0])
    turn(q, theta[-1]) → q
        The query was taken for the first word of the text. It comes alone, but S − 1 words stand
        before it: it is at position S − 1.
    turn(q, theta[-1]) → turn(q, S * speed)
        Off by one: this turns the query to position S. Positions are counted from 0, so the
        newest word stands at S − 1.
    turn(keys, theta) → keys
        Only the query was turned. Then its own position counts, not the distance: turn each key
        by *its* position too.
    @ values → @ turn(values, theta)
        The values were turned as well. Rotary positions are for comparing: what is passed on is
        the value as it is.
    a, b = x[..., 0::2], x[..., 1::2] → a, b = x.chunk(2, dim=-1)
        You paired number j with number j + d_k/2, as transformers does. Here neighbours are a pair:
        2j and 2j + 1.
    turn(q, theta[-1]) → turn(q, -theta[-1])
        Query and key were turned in opposite directions, so their angles add up instead of
        cancelling. Turn both the same way.
    a * cos - b * sin → a * cos + b * sin
        This is no rotation: it changes lengths. The first number of a pair becomes
        a cos θ − b sin θ.
    / d_k**0.5 → / (d_k / 2) ** 0.5
        You divided by the root of the number of pairs, d_k/2. The dot product still adds up
        d_k products: divide by √d_k.
    / d_k**0.5 → / 1
        The scale is missing: divide by √d_k, as without positions.
    torch.arange(0, d_k, 2) → torch.arange(d_k // 2)
        The exponent is j/k, but should be 2j/k: all pairs after the first turn too fast.
    torch.arange(S)[:, None] → torch.arange(S).flip(0)[:, None]
        The positions run backwards. Only the distance counts, but its sign does as well.
    turn(q, theta[-1]) → turn(q, 2 * theta[-1])
        The query was turned twice. Its position is S − 1, as that of the last key.
    scores.softmax(-1) → scores
        The softmax is missing: scores are no weights.
    """,
)


# A bias on the scores --------------------------------------------------------------------


def _bias_cases() -> Iterator[tuple[int, int, int]]:
    yield 2, 3, 0
    yield 1, 2, 3
    yield 4, 3, 2
    yield 8, 1, 5


check_alibi = Exercise(
    task="write `def answer(H, T, offset):` that gives the biases, H×T×(offset + T).",
    inputs=("H", "T", "offset"),
    cases=_bias_cases,
    solution="""
    def answer(H, T, offset):
        t, s = offset + torch.arange(T), torch.arange(offset + T)
        distance = t[:, None] - s
        slope = 2.0 ** (-8 * torch.arange(1, H + 1) / H)
        bias = -slope[:, None, None] * distance
        return bias.masked_fill(distance < 0, -torch.inf)
    """,
    insight="Nothing here is learned or has an end: the table can be made for any length. Of 8 "
    "heads the first one sees a few words, the last one hundreds.",
    slips="""
    t, s = offset + torch.arange(T) → t, s = torch.arange(T)
        The new words were taken for the first ones of the text. `offset` words stand before them.
    torch.arange(1, H + 1) → torch.arange(H)
        Off by one: the heads are h = 1 … H, so the first slope is 2^(−8/H), not 1.
    -8 * torch.arange(1, H + 1) / H → -1.0 * torch.arange(1, H + 1)
        These are the slopes 1/2, 1/4, 1/8 … of *eight* heads. With H heads the exponent is −8h/H.
    torch.arange(1, H + 1) → torch.arange(H, 0, -1)
        The heads stand in reverse: the first one should have the steepest slope.
    -8 * → 8 *
        The sign of the exponent is missing: these slopes are above 1 and grow.
    bias = -slope → bias = slope
        The sign is wrong: a farther key should *cost*, so its bias is negative.
    [:, None, None] * distance → [:, None, None] * distance**2
        The distance is squared. The cost grows in a straight line: hence the name, attention with
        *linear* biases.
    [:, None, None] * distance → [:, None, None] * distance.clamp(max=1)
        All words before cost the same here. The cost grows with the distance.
    bias.masked_fill(distance < 0, -torch.inf) → bias
        The future is open, and since t − s is negative there, it is even *preferred*. Fill it
        with −∞.
    bias.masked_fill(distance < 0, -torch.inf) → -slope[:, None, None] * distance.abs()
        Later keys got a bias like that of earlier ones: they cost, but they are still seen. Fill
        them with −∞.
    distance < 0 → distance <= 0
        Off by one: each word may see itself, at distance 0.
    distance < 0 → distance > 0
        The mask points the wrong way: it hides the past.
    -torch.inf → 0.0
        A bias of 0 does not hide the future: it is the best of all. Only −∞ hides.
    torch.arange(offset + T) → torch.arange(T)
        These are biases among the new words alone. They also look at all words before them.
    """,
)


# Properties of whole functions -----------------------------------------------------------


def _code(x: Tensor, offset: int) -> Tensor:
    """The codes of the rows of x, in float64."""
    theta = angles(len(x), x.shape[1], offset)
    return torch.stack([theta.sin(), theta.cos()], -1).flatten(-2)


def _at(x: Tensor, offset: int) -> Tensor:
    """The positions of the rows of x."""
    return torch.arange(offset, offset + len(x), dtype=x.dtype)


def _turned(q: Tensor, k: Tensor, offset: int) -> Tensor:
    return scaled_dot_score(rotary(q, offset), rotary(k, offset))


SCORES: dict[str, ScoreAt] = {
    "queries and keys turned": _turned,
    "codes added to queries and keys": lambda q, k, offset: scaled_dot_score(
        q + _code(q, offset), k + _code(k, offset)
    ),
    "no positions": lambda q, k, offset: scaled_dot_score(q, k),
    "half the distance subtracted": lambda q, k, offset: (
        scaled_dot_score(q, k) - (_at(q, offset)[:, None] - _at(k, offset)).abs() / 2
    ),
    "the difference of the logarithms subtracted": lambda q, k, offset: (
        scaled_dot_score(q, k) - (_at(q, offset).log1p()[:, None] - _at(k, offset).log1p()).abs()
    ),
    "only the queries turned": lambda q, k, offset: scaled_dot_score(rotary(q, offset), k),
    "keys turned backwards": lambda q, k, offset: scaled_dot_score(
        rotary(q, offset), rotate(k, -angles(len(k), k.shape[1], offset))
    ),
    "the codes alone": lambda q, k, offset: scaled_dot_score(_code(q, offset), _code(k, offset)),
    "turned, and each query's position added": lambda q, k, offset: (
        _turned(q, k, offset) + _at(q, offset)[:, None]
    ),
    "all turned but the first key": lambda q, k, offset: scaled_dot_score(
        rotary(q, offset), torch.cat([k[:1], rotary(k, offset)[1:]])
    ),
}
for _name, _score in SCORES.items():
    _score.__doc__ = _name  # what a verdict calls it


def _move_cases() -> Iterator[tuple[ScoreAt, Tensor, Tensor, int]]:
    draw = rounded_normal(56)
    for T, S, k, delta in ((2, 3, 2, 1), (3, 2, 4, 7), (5, 7, 6, 100)):
        for f in SCORES.values():
            yield f, draw(T, k).double(), draw(S, k).double(), delta


check_distance_only = Exercise(
    task="write `def answer(f, q, k, delta):` that says True or False.",
    inputs=("f", "q", "k", "delta"),
    cases=_move_cases,
    solution="""
    def answer(f, q, k, delta):
        here, there = f(q, k, 0), f(q, k, delta)
        return torch.allclose(here, there)
    """,
    insight="Rotations and ALiBi pass. Added codes do not, although the dot products of the codes "
    "alone do: a word's own numbers meet the other's code as well.",
    slips="""
    f(q, k, 0), f(q, k, delta) → f(q, k, delta), f(q, k, delta)
        Your answer is True for every function. Do the two sides stand at different places?
    torch.allclose → torch.equal
        Too strict: turned by other angles, the same product differs in its last digit. Use
        `torch.allclose`.
    (here, there) → (here.softmax(-1), there.softmax(-1))
        You compared weights. What is added to all scores of a row does not show in them, but the
        question is about the *scores*.
    (here, there) → (here[:, -1], there[:, -1])
        Only the last key is compared, but one function treats the first one in another way:
        *all* scores must stay.
    (here, there) → (here.diagonal(), there.diagonal())
        You compared words with themselves, at distance 0. Compare all pairs.
    (here, there) → (here.argmax(-1), there.argmax(-1))
        You asked whether the best key stays the best. All scores must stay, up to rounding.
    torch.allclose(here, there) → torch.isclose(here, there).any()
        One score that stays is not enough: *all* of them must.
    return torch → return not torch
        True and False have changed places: True means that the scores stay.
    torch.allclose(here, there) → False
        It says False of every function. But turned queries and keys do pass.
    f(q, k, delta) → f(q, k.roll(1, 0), delta)
        The keys changed places among themselves, so other pairs of words are compared. Only
        `delta` should differ between the two sides.
    torch.allclose → torch.isclose
    """,
)


def _attention(
    x: Tensor,
    seen: Tensor | None,
    at_q: int | None = None,
    at_k: int | None = None,
    causal: bool = True,
) -> tuple[Tensor, Tensor]:
    """One head; queries and keys are rotated if their positions are given."""
    q = x if at_q is None else rotary(x, at_q)
    k = x if at_k is None else rotary(x, at_k)
    now = torch.stack([k, x.flip(1)])
    seen = now if seen is None else torch.cat([seen, now], 1)
    k, v = seen
    mask = causal_mask(len(k))[len(k) - len(x) :] if causal else None
    return attend(q, k, v, mask).output, seen


def _words(seen: Tensor | None) -> int:
    return 0 if seen is None else seen.shape[1]


def _mean(x: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor]:
    words = x if seen is None else torch.cat([seen, x])
    share = 1 / torch.arange(1.0, len(words) + 1, dtype=x.dtype)[:, None]
    return (words.cumsum(0) * share)[-len(x) :] if len(x) > 1 else words.mean(0)[None], words


DECODERS: dict[str, Decoder] = {
    "codes added": lambda x, seen: _attention(x + _code(x, _words(seen)), seen),
    "codes added, each call from position 0": lambda x, seen: _attention(x + _code(x, 0), seen),
    "codes added, from position 1": lambda x, seen: _attention(
        x + _code(x, 1 + _words(seen)), seen
    ),
    "codes added, positions one behind from the second call on": lambda x, seen: _attention(
        x + _code(x, max(0, _words(seen) - 1)), seen
    ),
    "queries and keys turned": lambda x, seen: _attention(x, seen, _words(seen), _words(seen)),
    "turned, but queries from position 0": lambda x, seen: _attention(x, seen, 0, _words(seen)),
    "no positions": lambda x, seen: _attention(x, seen),
    "no positions, only the word before kept": lambda x, seen: _attention(
        x, None if seen is None else seen[:, -1:]
    ),
    "no positions, nothing kept": lambda x, seen: _attention(x, None),
    "no causal mask": lambda x, seen: _attention(x, seen, causal=False),
    "the mean of the words so far": _mean,
    "each word for itself, doubled": lambda x, seen: (2 * x, x),
    "each word plus the code of the first one in its call": lambda x, seen: (
        x + _code(x[:1], _words(seen)),
        _attention(x, seen)[1],
    ),
}
for _name, _decoder in DECODERS.items():
    _decoder.__doc__ = _name


def _decoder_cases() -> Iterator[tuple[Decoder, Tensor]]:
    draw = rounded_normal(57)
    for T, D in ((3, 2), (4, 6), (7, 2)):
        for f in DECODERS.values():
            yield f, draw(T, D).double()


check_step_by_step = Exercise(
    task="write `def answer(f, x):` that says True or False.",
    inputs=("f", "x"),
    cases=_decoder_cases,
    solution="""
    def answer(f, x):
        seen, rows = None, []
        for t in range(len(x)):
            row, seen = f(x[t : t + 1], seen)
            rows.append(row)
        step_by_step, at_once = torch.cat(rows), f(x, None)[0]
        return torch.allclose(step_by_step, at_once)
    """,
    insight="A model is trained all at once and writes step by step, so each decoder needs "
    "this test. With position 0 at every step it is wrong from the second word on, and no error "
    "message says so.",
    slips="""
    f(x[t : t + 1], seen) → f(x[t : t + 1], None)
        Each word was given alone, as if nothing stood before it. Pass on what `f` gave back as
        `seen`.
    (step_by_step, at_once) → (step_by_step[0], at_once[0])
        Only the first word is compared. It stands at position 0 in any case: a wrong position
        shows from the second word on.
    (step_by_step, at_once) → (step_by_step[:2], at_once[:2])
        Only the first two words are compared. One of the decoders keeps no more than the word
        before: that shows from the third word on.
    (step_by_step, at_once) → (step_by_step[-1], at_once[-1])
        Only the last word is compared. It may see all others, so a missing causal mask does not
        show in it: compare all.
    torch.allclose → torch.equal
        Too strict: sums that were added up in another order differ in the last digit. Use
        `torch.allclose`.
    torch.allclose(step_by_step, at_once) → torch.isclose(step_by_step, at_once).any()
        It says True of every decoder. Are *all* outputs compared, those of later words too?
    torch.allclose(step_by_step, at_once) → False
        It says False of every decoder, but some are right.
    return torch → return not torch
        True and False have changed places: True means that both ways agree.
    f(x, None) → f(x, seen)
        You gave all words once more, after the steps. For the comparison start anew: `f(x, None)`.
    x[t : t + 1] → x[: t + 1]
    x[t : t + 1] → x[t:]
    """,
    test="""
    def test(answer):
        x = torch.tensor([[1.0], [2.0], [4.0], [8.0]])

        def f(keeps=1.0, slip_at=None, by=1.0):  # a running sum, and where it goes wrong
            def decoder(x, seen):
                total, count = seen or (0.0, 0)
                rows = keeps * total + x.cumsum(0)
                if len(x) == 1 and count == slip_at:
                    rows = rows + by
                return rows, (rows[-1], count + len(x))

            return decoder

        assert answer(f(), x) and answer(f(slip_at=3, by=1e-6), x)  # but for rounding
        assert not answer(f(keeps=0.0), x) and not answer(f(slip_at=3), x)
        once = lambda x, seen: (x + (len(x) == 1) * (x == 4.0), x)  # wrong at the third word alone
        assert not answer(once, x)
    """,
)
