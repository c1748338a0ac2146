"""The part of torch.nn.functional that the exercises need, in plain Python."""

from math import inf, pi

from torch._tensor import *

FUNCTIONAL = {name: TORCH[name] for name in ("relu", "sigmoid", "tanh")}


def functional(*functions, **named):
    """Functions of torch.nn.functional; also a decorator."""
    named |= {function.__name__: function for function in functions}
    FUNCTIONAL.update(
        {name: public(function, name, synonyms={}) for name, function in named.items()}
    )
    return FUNCTIONAL[next(iter(named))]


def _guessed(t, dim):
    """The axis that torch takes, with a warning, where none is given."""
    return (0 if t.ndim in (0, 1, 3) else 1) if dim is None else dim


def _floating(t, name):
    here(t.dtype.kind == FLOAT, f"`{name}` of integers")
    return t


@functional
def gelu(t, approximate="none"):
    need(t.dtype.kind == FLOAT, "unable", "GeluKernelImpl", t.dtype.title)
    if approximate == "tanh":
        return t * 0.5 * (1 + ((2 / pi) ** 0.5 * (t + 0.044715 * t**3)).tanh())
    need(approximate == "none", "approximate")
    return t * 0.5 * (1 + (t * 0.5**0.5).erf())


@functional
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    x1, x2 = (
        _floating(x, "cosine_similarity").expand(broadcast_shapes(x1.shape, x2.shape))
        for x in (x1, x2)
    )
    lengths = [(x * x).sum(dim).sqrt().clamp(min=eps) for x in (x1, x2)]
    return (x1 * x2).sum(dim) / (lengths[0] * lengths[1])


def _last_axes(name, t, shape):
    """The axes that a layer normalizes."""
    listed, kind = isinstance(shape, tuple | list), type(shape).__name__
    need(listed, "argument", name, "normalized_shape", 2, "tuple of ints", kind)
    same, wanted = tuple(t.shape[t.ndim - len(shape) :]) == tuple(shape), ["*", *shape]
    need(same, "normalized", [*shape], str(wanted).replace("'", ""), [*t.shape])
    return [*range(-len(shape), 0)]


@functional
def layer_norm(t, normalized_shape, weight=None, bias=None, eps=1e-5):
    over = _last_axes("layer_norm", t, normalized_shape)
    t = t - t.mean(over, keepdim=True)
    t = t / (t.square().mean(over, keepdim=True) + eps).sqrt()
    t = t if weight is None else t * weight
    return t if bias is None else t + bias


@functional
def rms_norm(t, normalized_shape, weight=None, eps=None):
    over = _last_axes("rms_norm", t, normalized_shape)
    eps = finfo(t.dtype).eps if eps is None else eps
    t = t / (t.square().mean(over, keepdim=True) + eps).sqrt()
    return t if weight is None else t * weight


@functional
def linear(t, weight, bias=None):
    need(t.dtype is weight.dtype, "linear_dtypes", t.dtype.title, weight.dtype.title)
    fits = weight.ndim != 2 or not t.ndim or t.shape[-1] == weight.shape[1]
    need(fits, "mat1", prod(t.shape[:-1]), t.shape[-1:].numel(), *reversed(weight.shape))
    out = t @ weight.t()
    return out if bias is None else out + bias


@functional
def embedding(t, weight):
    need(t.dtype.kind == INTEGER, "ids", t.type())
    need(all(0 <= i < weight.shape[0] for i in numbers(t)), "ids_range")
    return weight[t]


@functional
def one_hot(t, num_classes=-1):
    need(t.dtype is int64, "one_hot")
    ids = numbers(t)
    need(min(ids, default=0) >= 0, "class_low")
    n = max(ids) + 1 if num_classes == -1 else num_classes
    need(max(ids, default=-1) < n, "class_high")
    return make([int(i == k) for i in ids for k in range(n)], (*t.shape, n), int64)


def _averaged(loss, reduction, count=None):
    here(reduction in ("none", "sum", "mean"), f"the reduction {reduction}")
    if reduction == "mean":
        return loss.sum() / (loss.numel() if count is None else count)
    return loss.sum() if reduction == "sum" else loss


@functional
def nll_loss(t, target, *, ignore_index=-100, reduction="mean", _smooth=0.0):
    classes = 0 if t.ndim == 1 else 1
    batches = t.shape[:classes], target.shape[:classes]
    need(batches[0] == batches[1], "batches", *(batch.numel() for batch in batches))
    need(target.dtype is int64, "dtypes", "Long", target.dtype.title)
    fits = target.shape == t.shape[:classes] + t.shape[classes + 1 :]
    here(fits, "`cross_entropy` of such shapes")
    for i in numbers(target):
        need(i == ignore_index or 0 <= i < t.shape[classes], "target", i)
    kept = target != ignore_index
    own = target.masked_fill(~kept, 0).unsqueeze(classes)
    loss = -t.gather(classes, own).squeeze(classes)
    loss = (1 - _smooth) * loss - _smooth * t.mean(classes) if _smooth else loss
    return _averaged(loss.masked_fill(~kept, 0.0), reduction, kept.sum())


@functional
def cross_entropy(t, target, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    classes = 0 if t.ndim == 1 else 1
    log_p = t.log_softmax(classes)
    if target.shape != t.shape:
        how = {"ignore_index": ignore_index, "reduction": reduction, "_smooth": label_smoothing}
        return nll_loss(log_p, target, **how)
    need(target.dtype.kind == FLOAT, "classes", target.dtype.title)
    wanted = target * (1 - label_smoothing) + label_smoothing / t.shape[classes]
    loss = -(wanted * log_p).sum(classes)
    return _averaged(loss, reduction)


@functional
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None
):
    here(not dropout_p and not (is_causal and attn_mask is not None), "such an attention")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = TORCH["ones"](query.shape[-2], key.shape[-2]).tril().bool()
    if attn_mask is not None and attn_mask.dtype.kind == BOOL:
        scores = scores.masked_fill(~attn_mask, -inf)
    elif attn_mask is not None:
        kinds = attn_mask.dtype.c_name, query.dtype.c_name
        need(attn_mask.dtype.kind == FLOAT, "sdpa", *kinds)
        scores = scores + attn_mask
    nothing = (scores == -inf).all(-1, keepdim=True)  # then torch gives zeros
    return scores.softmax(-1).masked_fill(nothing, 0.0) @ value


@functional
def pad(t, pad, mode="constant", value=None):
    here(mode == "constant" and len(pad) <= 2 * t.ndim, "such a `pad`")
    need(len(pad) % 2 == 0, "pad")
    for k in range(len(pad) // 2):
        d, (before, after) = t.ndim - 1 - k, pad[2 * k : 2 * k + 2]
        first, last = max(-before, 0), t.shape[d] - max(-after, 0)
        shape = [*t.shape[:d], 0, *t.shape[d + 1 :]]
        parts = [t.narrow(d, first, last - first)]
        for n, at in ((before, 0), (after, len(parts))):
            shape[d] = max(n, 0)
            parts.insert(at and len(parts), t.new_full(shape, value or 0))
        t = TORCH["cat"](parts, d)
    return t


@public
def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    longest = max(len(t) for t in sequences)
    fills = [t.new_full((longest - len(t), *t.shape[1:]), padding_value) for t in sequences]
    padded = [TORCH["cat"](pair) for pair in zip(sequences, fills, strict=True)]
    return TORCH["stack"](padded, 0 if batch_first else 1)


functional(
    dropout=lambda t, p=0.5, training=True: here(not (training and p), "`dropout`") or t,
    log_softmax=lambda t, dim=None, dtype=None: t.log_softmax(_guessed(t, dim), dtype),
    mse_loss=lambda t, target, *, reduction="mean": _averaged((t - target).square(), reduction),
    normalize=lambda t, p=2.0, dim=1, eps=1e-12: t / t.norm(p, dim, True).clamp(min=eps),
    silu=lambda t: _floating(t, "silu") * t.sigmoid(),
    softplus=lambda t: TORCH["where"](
        t > 20, t, _floating(t, "softplus").clamp(max=20).exp().log1p()
    ),
    softmax=lambda t, dim=None, dtype=None: t.softmax(_guessed(t, dim), dtype),
)
TORCH["cosine_similarity"] = cosine_similarity
