"""A small transformer, trained: memory.py DEVICE [OUTPUT]. With OUTPUT, torch's profiler tells there what a step
really holds at its peak, in bytes by torch's own categories."""

import collections
import json
import sys

import torch
from torch import nn

WIDTH, HEADS, ROWS, WORDS = 256, 4, 256, 2048


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) / 8).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.layers = nn.Sequential(*(Layer() for _ in range(4)))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(words)))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, device: str) -> None:
    words = torch.randint(0, WORDS, (4, ROWS), device=device)
    loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def peak(profile: "torch.profiler.profile") -> dict[str, int]:
    timeline = profile._memory_profile().timeline
    categories = profile._memory_profile()._categories
    now: collections.Counter[str] = collections.Counter()
    most: collections.Counter[str] = collections.Counter()
    for _, action, (key, version), size in timeline:
        category = categories.get(key, version)
        name = category.name if category else "OTHER"
        if action.name in ("PREEXISTING", "CREATE"):
            now[name] += size
        elif action.name == "DESTROY":
            now[name] -= size
        else:  # a new version may be of another category
            after = categories.get(key, version + 1)
            now[name] -= size
            now[after.name if after else "OTHER"] += size
        if now.total() > most.total():
            most = now.copy()
    return dict(most)


def main() -> None:
    device, output = sys.argv[1], sys.argv[2:]
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(2):
        step(model, optimizer, device)
    if not output:
        return step(model, optimizer, device)
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as profile:
        step(model, optimizer, device)
    with open(output[0], "w") as file:
        json.dump(peak(profile), file)


if __name__ == "__main__":
    main()
