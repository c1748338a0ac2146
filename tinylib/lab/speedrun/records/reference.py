"""The reference run, the unit of time: GPT-2's form, 200 steps of AdamW in float32.

It uses torch alone, so that the unit stays the same when the course's own code gets faster.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

V, T, D, H, LAYERS = 65, 256, 128, 4, 4


class Reference(nn.Module):
    """Embeddings with learned positions, four blocks with the norm first, logits."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(V, D), nn.Embedding(T, D)
        block = nn.TransformerEncoderLayer(
            D, H, 4 * D, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(
            block, LAYERS, nn.LayerNorm(D), enable_nested_tensor=False
        )
        self.output = nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.tokens(ids) + self.positions.weight[:length]
        return self.output(self.blocks(x, mask, is_causal=True))


def train(text: str, seed: int, path: Path) -> None:
    torch.manual_seed(seed)
    model, number = Reference(), {sign: i for i, sign in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[sign] for sign in text])
    learner = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(200):
        start = torch.randint(len(ids) - T, (4, 1))
        rows = ids[start + torch.arange(T + 1)]
        loss = cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        learner.zero_grad()
        loss.backward()
        learner.step()
    torch.save(model.state_dict(), path)


def load(path: Path) -> nn.Module:
    model = Reference()
    model.load_state_dict(torch.load(path))
    return model
