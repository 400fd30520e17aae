"""As nanoGPT is trained: rows are drawn from data of the host, the next ones while the model runs, so that a step's
first operation on the device is one of a model that is compiled and wrapped."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS, WIDTH, WORDS = 256, 128, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.up, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, x, y):
        out = self.head(nn.functional.gelu(self.up(self.words(x))))
        return nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())


def main():
    dist.init_process_group("nccl")
    data = torch.arange(1 << 17) % WORDS

    def batch():
        places = torch.randint(len(data) - ROWS, (2,))
        x, y = (torch.stack([data[i + next : i + next + ROWS] for i in places]) for next in (0, 1))
        return x.pin_memory().to("cuda", non_blocking=True), y.pin_memory().to("cuda", non_blocking=True)

    model = DistributedDataParallel(torch.compile(Model().to("cuda")))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = batch()
    for _ in range(4):
        loss = model(x, y)
        x, y = batch()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    main()
