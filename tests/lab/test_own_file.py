"""The reader's own file: its pieces, what it computes, and that no letter of a reader's is lost."""

import subprocess
import sys
from collections.abc import Callable
from itertools import accumulate
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from tinylib.generation import sample, top_k, top_p
from tinylib.gpt import GPT, Block, GPTConfig, next_token_loss
from tinylib.lab.own_file import assemble, cut, grow, imported, piece
from tinylib.multi_head_attention import MultiHeadAttention
from tinylib.normalization import rms_norm
from tinylib.positional_encoding import rotary

PIECES = [*cut()[1]]
WHOLE = imported(assemble(PIECES), Path("my_gpt.py"))
PREFIXES = ["-".join(some) for some in accumulate([[one] for one in PIECES])]
LOGITS = torch.tensor([[1.0, 3.0, 2.0, -1.0], [0.0, 0.0, 9.0, 0.0]])


def same_weights(seed: int = 0) -> tuple[GPT, Any, torch.Tensor]:
    """The course's GPT and the reader's with the same weights, and tokens."""
    torch.manual_seed(seed)
    course = GPT(GPTConfig(V=30, max_len=12, D=16, H=4, layers=2, dropout=0.0))
    own = WHOLE.GPT(30, 12, 16, 4, 2)
    own.load_state_dict(course.state_dict())
    return course, own, torch.randint(30, (3, 9))


def run(module: ModuleType) -> None:
    """All that these pieces can do, on small inputs."""
    x = torch.randn(2, 5, 8)
    for name in ("SelfAttention", "LearnedPositions", "MultiHeadAttention", "GPT"):
        if kind := getattr(module, name, None):
            widths = {"LearnedPositions": (5, 8), "MultiHeadAttention": (8, 2)}
            if name != "GPT":
                assert kind(*widths.get(name, (8,)))(x).shape == x.shape
                continue
            model, ids = kind(256, 6, 8, 2, 1), torch.tensor(module.encode("to be or not to be"))
            module.train(model, ids, steps=2, batch=2)
            if hasattr(module, "generate"):
                assert module.generate(model, ids[None, :3], 4).shape == (1, 7)


@pytest.mark.parametrize("prefix", [*PREFIXES, PREFIXES[-1].replace("14-", "")])
def test_each_prefix_runs_also_without_the_cache(prefix: str) -> None:
    run(imported(assemble(prefix.split("-")), Path("my_gpt.py")))


def test_the_pieces_are_the_whole_file() -> None:
    whole = Path(__file__).parents[2] / "tinylib" / "lab" / "my_gpt.py"
    assert assemble(PIECES) == whole.read_text(encoding="utf-8")
    assert piece("04").startswith("def attend") and piece("14").endswith("return k, v\n")


def test_it_computes_what_torch_computes() -> None:
    targets, x = torch.tensor([1, 3]), torch.randn(2, 5, 8)
    assert_close(WHOLE.softmax(LOGITS), LOGITS.softmax(-1))
    far = torch.tensor([[1000.0, 0.0]])
    assert_close(WHOLE.cross_entropy(far, torch.tensor([1])), torch.tensor(1000.0))
    functional = torch.nn.functional
    assert_close(WHOLE.cross_entropy(LOGITS, targets), functional.cross_entropy(LOGITS, targets))
    mask = torch.rand(5, 5) < 0.7
    mask[:, 0] = True
    wanted = functional.scaled_dot_product_attention(x, x, x, mask)
    assert_close(WHOLE.attend(x, x, x, mask), wanted)
    assert_close(WHOLE.LayerNorm(8)(x), functional.layer_norm(x, (8,)))


def test_it_computes_what_tinylib_computes() -> None:
    x = torch.randn(2, 5, 8)
    assert_close(WHOLE.rotate(x, 3), rotary(x, 3))
    assert_close(WHOLE.RMSNorm(8)(x), rms_norm(x, torch.ones(8)))


def test_its_gpt_has_the_logits_the_loss_and_the_gradients_of_tinylibs() -> None:
    course, own, tokens = same_weights()
    losses = next_token_loss(course, tokens), WHOLE.next_token_loss(own, tokens)
    for loss in losses:
        loss.backward()
    assert_close(*losses)
    assert_close(course(tokens), own(tokens))
    gradients = dict(course.named_parameters())
    for name, weight in own.named_parameters():
        assert_close(weight.grad, gradients[name].grad, rtol=1e-5, atol=1e-6)


def writes_the_same_with(caches: list[Any], model: Any) -> None:
    texts = []
    for kept in (None, caches):
        torch.manual_seed(3)
        text = torch.arange(12).view(3, 4)
        texts.append(WHOLE.generate(model, text, 8, 0.7, k=9, p=0.9, caches=kept))
    assert torch.equal(*texts) and caches[0].length == 11


def test_with_its_cache_a_llama_writes_the_same() -> None:
    torch.manual_seed(1)
    own = WHOLE.Llama(30, 12, 16, 4, 2, kv_heads=2, F=24, base=1e5)
    assert own.blocks[0].attention.w_k.out_features == 8
    writes_the_same_with([WHOLE.KVCache() for _ in own.blocks], own)


def test_the_first_loss_is_about_ln_v() -> None:
    torch.manual_seed(0)
    model = WHOLE.GPT(256, 16, 32, 4, 2)
    loss = WHOLE.next_token_loss(model, torch.randint(256, (8, 17)))
    assert loss.item() == pytest.approx(5.545, abs=0.05)


def test_every_text_comes_back_from_its_tokens() -> None:
    merges = [(108, 108), (104, 101), (257, 256), (258, 111)]  # ll, he, hell, hello
    text = "hello, hell  ollo\n\n日本 🙂 naïve ď"
    ids = WHOLE.encode(text, merges)
    assert WHOLE.decode(ids, merges) == text and ids[0] == 259
    assert len(ids) < len(WHOLE.encode(text)) and WHOLE.encode("") == []


def test_the_file_grows_and_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my_gpt.py"
    assert not hasattr(grow("06", path), "MultiHeadAttention")
    assert path.read_text() == assemble(["01", "04", "06"])  # those before it come along
    assert hasattr(grow("08", path), "MultiHeadAttention")
    grow("04", path)  # a page that is run again takes nothing away
    assert path.read_text() == assemble(["01", "04", "06", "07", "08"])
    assert capsys.readouterr().out.splitlines()[-1] == "my_gpt.py has the code of chapters 01, 04"
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import my_gpt; my_gpt.attend"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"0.5", b".5"),
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text + b"\n\ndef mine():\n\treturn 'n\xc3\xa9'\n",
        lambda text: text.replace(b"def attend(", b"def attend_too("),
        lambda text: b"def softmax(x):\n    return x.softmax(-1)\n",
    ],
    ids=["edited", "windows", "byte order mark", "function", "renamed", "theirs"],
)
def test_a_readers_letters_are_never_lost(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "my_gpt.py"
    grow("04", path)
    path.write_bytes(own := change(path.read_bytes()))
    module = grow("06", path)
    assert path.read_bytes() == own
    x = torch.randn(1, 4, 8)
    assert module.SelfAttention(8)(x).shape == x.shape  # what the file lacks is there in memory
    assert "mine" not in own.decode("utf-8-sig") or module.mine() == "né"


def test_what_is_wrong_with_a_readers_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "my_gpt.py"
    path.write_text("def softmax(logits:\n    return 1\n")
    with pytest.raises(SyntaxError):
        grow("04", path)
    path.write_bytes(b"# \xff\n")
    with pytest.raises(ValueError, match="no UTF-8 at byte 2: save it as UTF-8"):
        grow("04", path)
    assert path.read_bytes() == b"# \xff\n"
    path.write_text("def softmax(logits):\n    return logits.no_such_thing\n")
    with pytest.raises(AttributeError) as caught:
        grow("04", path).softmax(LOGITS)
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == (path, 2)
    with pytest.raises(KeyError, match="chapter 05 has no piece"):
        grow("05", path)


def test_a_folder_that_cannot_be_written_is_no_hindrance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    module = grow("01", tmp_path / "file" / "my_gpt.py")
    assert_close(module.softmax(LOGITS), LOGITS.softmax(-1))
    assert "cannot be written here" in capsys.readouterr().out


# What a piece has to do, and mistakes that a reader could make in it -----------------------------


def check_01(own: Any) -> None:
    targets = torch.tensor([1, 3])
    for logits in (LOGITS, torch.tensor([[1000.0, 0.0, 0.0, 0.0], [0.0, -1000.0, 0.0, 5.0]])):
        assert_close(own.softmax(logits), logits.softmax(-1))
        wanted = torch.nn.functional.cross_entropy(logits, targets)
        assert_close(own.cross_entropy(logits, targets), wanted)
    three = torch.stack([LOGITS, 2 * LOGITS])
    assert_close(own.softmax(three), three.softmax(-1))


def check_04(own: Any) -> None:
    q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    mask = torch.tensor([[True, True, False, True, False]]).expand(3, 5)
    attention = torch.nn.functional.scaled_dot_product_attention
    assert_close(own.attend(q, k, v), attention(q, k, v))
    assert_close(own.attend(q, k, v, mask), attention(q, k, v, mask))


def check_06(own: Any) -> None:
    assert own.causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True] * 3]
    layer, x = own.SelfAttention(6), torch.randn(2, 5, 6)
    q, k, v = (x @ w.weight.T for w in (layer.w_q, layer.w_k, layer.w_v))
    assert layer.w_q.bias is None and own.SelfAttention(6, bias=True).w_v.bias is not None
    attention = torch.nn.functional.scaled_dot_product_attention
    assert_close(layer(x), attention(q, k, v, is_causal=True))


def check_07(own: Any) -> None:
    layer, x = own.LearnedPositions(9, 6), torch.randn(2, 4, 6)
    assert layer.w_pos.requires_grad and layer.w_pos.std() < 0.1
    assert_close(layer(x), x + layer.w_pos[:4])
    assert_close(layer(x, 3), x + layer.w_pos[3:7])
    assert_close(own.rotate(x, 5), rotary(x, 5))
    assert_close(own.rotate(x, 2, base=100.0), rotary(x, 2, base=100.0))
    assert_close(own.rotate(x), rotary(x))


def check_08(own: Any) -> None:
    layer, x = own.MultiHeadAttention(6, 3), torch.randn(2, 5, 6)
    course = MultiHeadAttention(6, 3, causal=True)
    course.load_state_dict(layer.state_dict())
    assert_close(layer(x), course(x))
    cache = WHOLE.KVCache()
    parts = [layer(x[:, :3], cache), layer(x[:, 3:], cache)]
    assert_close(torch.cat(parts, 1), layer(x))


def check_09(own: Any) -> None:
    x = 3 + torch.randn(2, 5, 8)
    norm, torchs = own.LayerNorm(8), torch.nn.LayerNorm(8)
    for weight in torchs.parameters():
        torch.nn.init.normal_(weight)
    assert_close(norm(x), torch.nn.functional.layer_norm(x, (8,)))
    norm.load_state_dict(torchs.state_dict())
    assert_close(norm(x), torchs(x))
    layer, block = own.FeedForward(8, 20), own.Block(8, 2)
    hidden = torch.nn.functional.gelu(layer.w_1(x), approximate="tanh")
    assert hidden.shape[-1] == 20 and layer.w_1.bias is not None
    assert_close(layer(x), layer.w_2(hidden))
    for weight in block.parameters():
        torch.nn.init.normal_(weight)
    course = Block(GPTConfig(V=2, max_len=5, D=8, H=2, layers=1, dropout=0.0))
    course.load_state_dict(block.state_dict())
    assert_close(block(x), course(x)[0])
    cache = WHOLE.KVCache()
    assert_close(torch.cat([block(x[:, :3], cache), block(x[:, 3:], cache)], 1), block(x))


def check_11(own: Any) -> None:
    merges = [(104, 101), (256, 108), (257, 108), (32, 258)]  # he, hel, hell, " hell"
    assert own.encode("hello, hell he") == [*b"hello, hell he"]
    assert own.encode("hello, hell he", merges) == [258, 111, 44, 259, 32, 256]
    assert own.encode("at hat", [(116, 32)]) == [*b"at hat"]  # no token crosses the space
    for text in ("", "aaa hello", "été", " two  spaces\n", "日本 🙂", "don't stop!?"):
        for some in ((), merges):
            assert own.decode(own.encode(text, some), some) == text
    assert own.decode([0xE9]) == "\ufffd"


def check_12(own: Any) -> None:
    course, _, tokens = same_weights()
    model = own.GPT(30, 12, 16, 4, 2)
    assert model.max_len == 12 and model.embedding.weight is model.output.weight
    assert abs(own.next_token_loss(model, tokens) - log(30)) < 0.1
    model.load_state_dict(course.state_dict())
    assert_close(model(tokens), course(tokens))
    assert_close(own.next_token_loss(model, tokens), next_token_loss(course, tokens))
    caches = [WHOLE.KVCache() for _ in model.blocks]
    parts = [model(tokens[:, :4], caches), model(tokens[:, 4:], caches)]
    assert_close(torch.cat(parts, 1), course(tokens))
    windows = []
    watch = model.register_forward_pre_hook(lambda _, given: windows.append(given[0]))
    own.train(model, torch.arange(30).repeat(9), steps=60, batch=8, rate=0.02)
    watch.remove()
    assert own.next_token_loss(model, torch.arange(12)[None]) < 1.2
    assert len(windows) == 60 and windows[0].shape == (8, 12)
    assert len({int(window[0, 0]) for window in windows}) > 10


def check_13(own: Any) -> None:
    for k in (1, 2, 4):
        assert_close(own.top_k(LOGITS, k), top_k(LOGITS, k))
    for p in (0.3, 0.9, 1.0):
        assert_close(own.top_p(LOGITS, p), top_p(LOGITS, p))
    for u in (0.0, 0.05, 0.3, 0.5, 0.9, 1 - 2**-24):
        assert_close(own.sample(LOGITS, torch.full((2,), u)), sample(LOGITS, torch.full((2,), u)))
    assert_close(own.sample(LOGITS, torch.tensor([0.02, 0.99])), torch.tensor([0, 2]))
    _, model, tokens = same_weights(1)
    likely = tokens[:, :9]
    for _ in range(6):  # beyond the model's twelve tokens
        likely = torch.cat([likely, model(likely[:, -12:])[:, -1:].argmax(-1)], -1)
    assert torch.equal(own.generate(model, tokens[:, :9], 6, k=1), likely)
    assert torch.equal(own.generate(model, tokens[:, :9], 6, temperature=1e-4), likely)
    assert torch.equal(own.generate(model, tokens[:, :9], 6, p=1e-6), likely)
    torch.manual_seed(0)
    drawn = own.generate(model, tokens[:1, :1].repeat(4000, 1), 1, temperature=2.0)[:, 1]
    wanted = (model(tokens[:1, :1])[0, -1] / 2).softmax(-1)
    assert (drawn.bincount(minlength=30) / 4000 - wanted).abs().max() < 0.03


def check_14(own: Any) -> None:
    cache, k, v = own.KVCache(), torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    for at, to in ((0, 2), (2, 3), (3, 5)):
        assert cache.length == at
        all_k, all_v = cache.append(k[:, :, at:to], v[:, :, at:to])
        assert_close(all_k, k[:, :, :to])
        assert_close(all_v, v[:, :, :to])
    _, model, _ = same_weights(1)
    writes_the_same_with([own.KVCache() for _ in model.blocks], model)


CHECKS: dict[str, Callable[[Any], None]] = {
    name[6:]: check for name, check in globals().items() if name.startswith("check_")
}
SLIPS = """
01  .amax(-1, keepdim=True) → .amax()
01  (logits - top).exp() → logits.exp()
01  exps.sum(-1, keepdim=True) → exps.sum(0, keepdim=True)
01  exps / exps.sum(-1, keepdim=True) → exps / exps.sum()
01  logits.logsumexp(-1, keepdim=True) → logits.exp().sum(-1, keepdim=True).log()
01  return -ln_p → return ln_p
01  .mean() → .sum()
01  ln_p = logits - logits.logsumexp(-1, keepdim=True) → ln_p = logits
04  k.mT → k
04  / q.shape[-1] ** 0.5 → / 1
04  q.shape[-1] ** 0.5 → q.shape[-1]
04  q.shape[-1] ** 0.5 → k.shape[-2] ** 0.5
04  ~mask → mask
04  -torch.inf → 0.0
04  softmax(scores) @ v → softmax(scores.mT).mT @ v
04  softmax(scores) @ v → scores @ v
06  .tril() → .triu()
06  .tril() → .tril(-1)
06  dtype=torch.bool → dtype=torch.long
06  self.w_v(x), mask → self.w_v(x)
06  attend(self.w_q(x), self.w_k(x) → attend(self.w_k(x), self.w_q(x)
06  self.w_v(x) → x
06  nn.Linear(D, D, bias) → nn.Linear(D, D)
07  offset : offset + x.shape[-2] → : x.shape[-2]
07  offset : offset + x.shape[-2] → offset : x.shape[-2]
07  * 0.02 → * 1
07  nn.Parameter(torch.randn(max_len, D) * 0.02) → torch.randn(max_len, D) * 0.02
07  + self.w_pos → * self.w_pos
07  + offset → - offset
07  base ** - → base **
07  / d_k → / 2 / d_k
07  x[..., 0::2], x[..., 1::2] → x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
07  even * cos - odd * sin → even * cos + odd * sin
07  even * sin + odd * cos → even * sin - odd * cos
07  even * cos - odd * sin, even * sin + odd * cos → even * sin + odd * cos, even * cos - odd * sin
07  .flatten(-2) → .mT.flatten(-2)
08  D // H → H
08  .transpose(1, 2)\\n → \\n
08  z.transpose(1, 2).flatten(2) → z.flatten(2)
08  self.split(q), self.split(k), self.split(v) → self.split(q), self.split(k), self.split(k)
08  k, v = cache.append(k, v) → cache.append(k, v)
08  [-q.shape[-2] :] → [: q.shape[-2]]
08  causal_mask(k.shape[-2]) → causal_mask(k.shape[-2]).T
08  , mask) → )
08  self.w_o(self.merge(attend(q, k, v, mask))) → self.merge(attend(q, k, v, mask))
09  x = x - x.mean(-1, keepdim=True)\\n → \\n
09  x.mean(-1, keepdim=True) → x.mean()
09  x.square().mean(-1, keepdim=True) → x.square().sum(-1, keepdim=True)
09  (variance + 1e-5).sqrt() → (variance + 1e-5)
09  * self.weight + self.bias → + self.bias
09  nn.Parameter(torch.zeros(D)) → torch.zeros(D)
09  torch.ones(D) → torch.zeros(D)
09  nn.functional.gelu(self.w_1(x), approximate="tanh") → self.w_1(x).relu()
09  self.attention(self.attention_norm(x), cache) → self.attention(x, cache)
09  self.attention(self.attention_norm(x), cache) → self.attention(self.attention_norm(x))
09  self.feed_forward(self.feed_forward_norm(x)) → self.feed_forward(self.attention_norm(x))
09  return x + self.feed_forward → return self.feed_forward
09  x = x + self.attention → x = self.attention
09  4 * D → D
09  D, H, bias=True → D, H
11  list(word.encode()) → [ord(c) for c in word]
11  256 + i → 255 + i
11  tokens[at : at + 2] = → tokens[at : at + 1] =
11  ids += tokens → ids = tokens
11   ?\\w+ → \\w+
11  .decode(errors="replace") → .decode()
11  pieces.append(pieces[left] + pieces[right]) → pieces.append(pieces[right] + pieces[left])
12  tokens[:, :-1]), tokens[:, 1:] → tokens), tokens
12  tokens[:, :-1]), tokens[:, 1:] → tokens[:, 1:]), tokens[:, :-1]
12  self.output.weight = self.embedding.weight → self.output.weight
12  std=0.02 → std=1
12  self.output(self.norm(x)) → self.output(x)
12  caches[0].length if caches else 0 → 0
12  caches[i] if caches else None → None
12  optimiser.zero_grad() → None
12  loss.backward() → None
12  optimiser.step() → None
12  (batch, 1) → (1, 1)
12  model.max_len + 1) → model.max_len)
12  x = block(x, → block(x,
13  .topk(k).values[..., -1:] → .topk(k).values[..., :1]
13  logits < least, -torch.inf)\\n\\n\\ndef top_p → logits < least, 0.0)\\n\\n\\ndef top_p
13  descending=True → descending=False
13   - softmax(falling) → \\n
13  before < p → before < p - 0.2
13  count - 1 → count
13  if p < 1 → if p == 1
13  if k → if not k
13  reached <= u[..., None] → reached >= u[..., None]
13  / temperature → * temperature
13  [:, -1] / → [:, 0] /
13  -model.max_len → 0
13  chosen[:, None]], -1 → chosen[:, None]][::-1], -1
13  torch.rand(len(logits)) → torch.rand(1).expand(len(logits))
14  self.k, self.v, self.length = k, v, k.shape[-2] → self.k, self.v, self.length = k, v, 1
14  torch.cat([self.k, k], -2) → torch.cat([k, self.k], -2)
14  self.k, self.v, self.length = k, v → self.k, self.v, self.length = k, k
14  [self.v, v] → [self.k, v]
14  length = 0 → length = 1
"""
MISTAKES = [
    (line[:2], *line[4:].replace("\\n", "\n").split(" → ")) for line in SLIPS.split("\n") if line
]


def slipped(number: str, right: str, wrong: str) -> ModuleType:
    """The file with a mistake in one piece, wherever the piece says so."""
    code = piece(number)
    assert right in code, f"the piece of {number} has no {right!r}"
    before = assemble(one for one in PIECES if one < number)
    return imported(f"{before}\n\n{code.replace(right, wrong)}", Path("my_gpt.py"))


@pytest.mark.parametrize("number", CHECKS)
def test_a_piece_passes_its_check_by_itself(number: str) -> None:
    torch.manual_seed(0)
    CHECKS[number](slipped(number, "", ""))


@pytest.mark.parametrize(("number", "right", "wrong"), MISTAKES)
def test_a_mistake_in_a_piece_is_found(number: str, right: str, wrong: str) -> None:
    torch.manual_seed(0)
    with pytest.raises(Exception):  # noqa: B017 (a wrong number, a wrong shape, a missing name)
        CHECKS[number](slipped(number, right, wrong))
