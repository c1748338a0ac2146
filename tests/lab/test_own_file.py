"""The reader's own file: its pieces, what it computes, and that no letter of a reader's is lost."""

import subprocess
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from peers import beside_transformers
from refresh import ROOT
from torch.testing import assert_close

from tinylib.generation import sample, top_k, top_p
from tinylib.gpt import GPT, GPTConfig, next_token_loss
from tinylib.lab.models.smollm2 import load_smollm2
from tinylib.lab.own_file import assemble, cut, grow, imported, piece, sizes_of
from tinylib.normalization import rms_norm
from tinylib.positional_encoding import rotary
from tinylib.real_model import Llama, LlamaConfig

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
    for name in ("SelfAttention", "LearnedPositions", "MultiHeadAttention", "GPT", "Llama"):
        if kind := getattr(module, name, None):
            widths: dict[str, tuple[float, ...]] = {
                "LearnedPositions": (5, 8),
                "MultiHeadAttention": (8, 2),
                "GPT": (256, 6, 8, 2, 1),
                "Llama": (256, 6, 8, 2, 1, 1, 12, 1e4),
            }
            part = kind(*widths.get(name, (8,)))
            if name not in ("GPT", "Llama"):
                assert part(x).shape == x.shape
                continue
            model, ids = part, torch.tensor(module.encode("to be or not to be"))
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
    lines = whole.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 280 and max(map(len, lines)) <= 80


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
    for k, p, u in ((1, 0.3, 0.0), (2, 0.9, 0.3), (4, 1.0, 1 - 2**-24)):
        assert_close(WHOLE.top_k(LOGITS, k), top_k(LOGITS, k))
        assert_close(WHOLE.top_p(LOGITS, p), top_p(LOGITS, p))
        drawn = torch.full((2,), u)
        assert_close(WHOLE.sample(LOGITS, drawn), sample(LOGITS, drawn))


def test_training_lowers_the_loss_on_windows_of_the_text() -> None:
    torch.manual_seed(0)
    model, windows = WHOLE.GPT(30, 12, 16, 4, 2), []
    model.register_forward_pre_hook(lambda _, given: windows.append(given[0]))
    WHOLE.train(model, torch.arange(30).repeat(9), steps=60, batch=8, rate=0.02)
    assert len(windows) == 60 and windows[0].shape == (8, 12)
    assert len({int(window[0, 0]) for window in windows}) > 10
    assert WHOLE.next_token_loss(model, torch.arange(12)[None]) < 1.2


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


def test_its_llama_is_tinylibs_and_writes_the_same_with_its_cache() -> None:
    torch.manual_seed(1)
    course = Llama(LlamaConfig(30, 12, 16, 4, 2, 24, 2, base=1000.0))
    for weight in course.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    own, tokens = WHOLE.Llama(**sizes_of(course)), torch.randint(30, (3, 12))
    own.load_state_dict(course.state_dict())
    assert_close(own(tokens), course(tokens))
    for model in (own, course):
        WHOLE.next_token_loss(model, tokens).backward()
    gradients = dict(course.named_parameters())
    for name, weight in own.named_parameters():
        assert_close(weight.grad, gradients.pop(name).grad, rtol=1e-4, atol=1e-5)
    assert not gradients
    caches = [WHOLE.KVCache() for _ in own.blocks]
    writes_the_same_with(caches, own)
    assert caches[1].k.shape == (3, 2, 11, 4)  # of two heads, not of four


@beside_transformers  # so that no two processes hold the weights at once
@torch.no_grad()
def test_its_llama_runs_the_real_model() -> None:
    model, tokens = load_smollm2()
    with torch.device("meta"):  # without random numbers
        own = WHOLE.Llama(**sizes_of(model))
    own.load_state_dict(model.state_dict(), assign=True)
    ids = torch.tensor([tokens.ids((ROOT / "README.md").read_text(encoding="utf-8"))[:80]])
    logits, wanted = own(ids), model(ids)
    assert_close(logits, wanted, rtol=0, atol=1e-3)
    assert torch.equal(logits.argmax(-1), wanted.argmax(-1))
    start, caches = torch.tensor([tokens.ids("The capital of France is")]), []
    caches += [WHOLE.KVCache() for _ in own.blocks]
    text = WHOLE.generate(own, start, 2, k=1, caches=caches)[0]
    assert tokens.text(text) == "The capital of France is Paris."


def test_a_model_that_the_file_cannot_be_is_refused() -> None:
    config = LlamaConfig(30, 12, 16, 4, 2, 24, 2)
    for change, message in (
        ({"tied": False}, "tied = False and eps = 1e-05: my_gpt.py is written for"),
        ({"eps": 1e-6}, "tied = True and eps = 1e-06"),
    ):
        with pytest.raises(ValueError, match=message):
            sizes_of(Llama(config._replace(**change)))
    with pytest.raises(ValueError, match=r"this is a GPT: give a Llama, such as load_smollm2\(\)"):
        sizes_of(same_weights()[0])


def test_the_file_trains_on_a_book_and_writes(tmp_path: Path) -> None:
    """As `python my_gpt.py book.txt`, with fewer steps and letters."""
    code = assemble([number for number in PIECES if number <= "14"])
    assert len(code.splitlines()) <= 233  # 175 of them are not blank
    for many, few in (("steps=1500", "steps=3"), (":1], 500", ":1], 20")):
        assert code.count(many) == 1
        code = code.replace(many, few)
    (tmp_path / "my_gpt.py").write_text(code, encoding="utf-8")
    (tmp_path / "book.txt").write_text("Once upon a time there was a fox. " * 30, encoding="utf-8")
    run = [sys.executable, "my_gpt.py", "book.txt"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, text = done.stdout.split("\n", 1)
    start, loss = first.rsplit(maxsplit=1)
    assert start == "step     0  loss" and float(loss) == pytest.approx(5.545, abs=0.4)
    assert text.startswith("O") and len(text) > 9


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
