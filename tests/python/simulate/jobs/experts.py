"""Expert parallelism: tokens go to the ranks of their experts, as many as the router says."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_to_all_single_autograd

EXPERTS, WIDTH, TOKENS, CHOSEN = 16, 256, 512, 2


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(EXPERTS // dist.get_world_size()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        group, ranks = dist.group.WORLD, dist.get_world_size()
        scores, chosen = self.gate(x).softmax(-1).topk(CHOSEN, -1)
        counts = torch.histc(chosen.float(), EXPERTS, 0, EXPERTS)
        order = chosen.flatten().argsort()
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts)
        sends = counts.view(ranks, -1).sum(1).int().tolist()
        takes = theirs.view(ranks, -1).sum(1).int().tolist()
        here = all_to_all_single_autograd(x[order // CHOSEN], takes, sends, group)
        parts = here.split(theirs.view(ranks, -1).sum(0).int().tolist())
        done = torch.cat([expert(part) for expert, part in zip(self.experts, parts, strict=True)])
        back = all_to_all_single_autograd(done, sends, takes, group)
        return torch.zeros_like(x).index_add(0, order // CHOSEN, back * scores.flatten()[order].unsqueeze(-1))


def main() -> None:
    dist.init_process_group("neuron")
    model = Experts().to("neuron")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(TOKENS, WIDTH, device="neuron")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
