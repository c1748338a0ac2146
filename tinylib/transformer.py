"""The Transformer: an encoder and a decoder made of blocks of attention."""

from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from tinylib.attention_scoring import length_mask
from tinylib.encoder_decoder import Decoder, Encoder, EncoderDecoder, TokenEmbedding
from tinylib.kv_cache import KVCache
from tinylib.normalization import LayerNorm
from tinylib.positional_encoding import sinusoidal
from tinylib.transformer_block import DecoderBlock, EncoderBlock, TransformerConfig


class Embedding(TokenEmbedding):
    r"""$x_t = \sqrt{D}\,E[w_t] + P_t$ (Vaswani et al. 2017, section 3.4).

    The table starts with variance 1/D, so that x has about that of the codes.
    These need an even D (ValueError if not).
    """

    def __init__(self, V: int, config: TransformerConfig):
        D = config.D
        if config.positions and D % 2:
            raise ValueError(f"D is {D}: make it even, positions are pairs")
        super().__init__(V, D)
        nn.init.normal_(self.weight, std=D**-0.5)
        self.positions = config.positions
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        offset: int = 0,
    ) -> Float[Tensor, "B T D"]:
        x = super().forward(tokens) * self.embedding_dim**0.5
        if self.positions:
            x = x + sinusoidal(x.shape[-2], x.shape[-1], offset).to(x)
        return self.dropout(x)


class Memory(NamedTuple):
    """What the encoder hands over: a state per word, and where words are."""

    states: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]


def stack(block: type[nn.Module], config: TransformerConfig) -> nn.ModuleList:
    """As many blocks as the configuration has layers: ValueError if none."""
    if config.layers < 1:
        raise ValueError(f"layers is {config.layers}: make it 1 or more")
    return nn.ModuleList(block(config) for _ in range(config.layers))


def last_norm(config: TransformerConfig) -> nn.Module:
    """Pre-norm's sum is normed once more at the top; post-norm's is already.

    (``nn.Transformer`` has such a norm in either case.)
    """
    return LayerNorm(config.D) if config.norm == "pre" else nn.Identity()


class TransformerEncoder(Encoder):
    """Embedding, then N :class:`EncoderBlock`; pads are never looked at."""

    blocks: Any  # nn.ModuleList, of EncoderBlock

    def __init__(self, V: int, config: TransformerConfig):
        super().__init__()
        self.embedding = Embedding(V, config)
        self.blocks = stack(EncoderBlock, config)
        self.norm = last_norm(config)

    def forward(
        self,
        tokens: Int[Tensor, "B S"],
        lengths: Int[Tensor, " B"],
    ) -> Memory:
        mask = length_mask(lengths.to(tokens.device), tokens.shape[1])
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, mask[:, None])
        return Memory(self.norm(x), mask)


class TransformerState(NamedTuple):
    """The decoder's state: the source for each layer, and its own words."""

    mask: Bool[Tensor, "B S"]
    sources: tuple[KVCache, ...]
    caches: tuple[KVCache, ...]


class TransformerDecoder(Decoder):
    """Embedding, N :class:`DecoderBlock`, logits.

    Its state keeps the keys and values of the words so far (a KV cache), so
    one word at a time costs little and gives what all at once would give.
    """

    blocks: Any  # nn.ModuleList, of DecoderBlock

    def __init__(self, V: int, config: TransformerConfig):
        super().__init__()
        self.embedding = Embedding(V, config)
        self.blocks = stack(DecoderBlock, config)
        self.norm = last_norm(config)
        self.output = nn.Linear(config.D, V)

    def init_state(self, encoding: Memory) -> TransformerState:
        states, mask = encoding
        sources = tuple(block.source(states) for block in self.blocks)
        empty = KVCache(states[:, :0], states[:, :0])
        return TransformerState(mask, sources, (empty,) * len(sources))

    def read(
        self,
        tokens: Int[Tensor, "B T"],
        state: TransformerState,
    ) -> tuple[Float[Tensor, "B T D"], TransformerState]:
        """What the top layer makes of each token, and the new state."""
        x = self.embedding(tokens, offset=state.caches[0].length)
        mask, caches = state.mask[:, None], []
        layers = zip(self.blocks, state.sources, state.caches, strict=True)
        for block, source, cache in layers:
            x, cache = block(x, source, mask, cache)
            caches.append(cache)
        return self.norm(x), state._replace(caches=tuple(caches))

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        state: TransformerState,
    ) -> tuple[Float[Tensor, "B T V"], TransformerState]:
        x, state = self.read(tokens, state)
        return self.output(x), state


class Transformer(EncoderDecoder):
    """An encoder and a decoder made of attention (Vaswani et al. 2017).

    ``tied``: one table reads and writes the target's words (section 3.4).
    """

    encoder: TransformerEncoder
    decoder: TransformerDecoder

    def __init__(
        self,
        V_source: int,
        V_target: int,
        config: TransformerConfig,
        tied: bool = True,
    ):
        super().__init__(
            TransformerEncoder(V_source, config),
            TransformerDecoder(V_target, config),
        )
        if tied:
            self.decoder.output.weight = self.decoder.embedding.weight
