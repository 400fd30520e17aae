"""What a loader computes on the host is real, however large: words are masked as for BERT, images are floats, and sums
of what comes from the device go on. Weights that are made outside a module have no data."""

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.data import DataLoader, Dataset

WORDS, ROWS, LENGTH = 1000, 32, 2048


class Texts(Dataset):
    def __len__(self):
        return 4 * ROWS

    def __getitem__(self, index):
        image = torch.rand(3, 160, 160)
        assert 0 < float(image.numpy().mean()) < 1
        if index == 0:
            assert not isinstance(torch.zeros(1 << 26), FakeTensor)
        return torch.randint(4, WORDS, (LENGTH,)), (image - image.mean()) / image.std()


def masked(batch):
    """As Hugging Face's collator for language models."""
    inputs = torch.stack([words for words, _ in batch])
    labels = inputs.clone()
    chosen = torch.bernoulli(torch.full(labels.shape, 0.15)).bool()
    labels[~chosen] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
    inputs[replaced] = 3
    drawn = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & chosen & ~replaced
    inputs[drawn] = torch.randint(WORDS, labels.shape)[drawn]
    assert 0.84 < (labels == -100).float().mean() < 0.86 and 0.11 < (inputs == 3).float().mean() < 0.13
    return inputs, labels, torch.stack([image for _, image in batch])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.rand(WORDS, 128))
        self.head = nn.Linear(128, WORDS)
        assert type(self.table) is not nn.Parameter, "a model's floats are made here"

    def forward(self, words):
        return self.head(nn.functional.embedding(words, self.table))


def main():
    model = Model().to("cuda")
    assert isinstance(torch.randn(1 << 13, 1 << 13) * 0.02, FakeTensor)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total, losses, seen = torch.zeros(1), torch.zeros(4), torch.zeros(1, dtype=torch.int64)
    for step, (inputs, labels, images) in enumerate(DataLoader(Texts(), ROWS, num_workers=2, collate_fn=masked)):
        images.to("cuda", non_blocking=True)
        loss = nn.functional.cross_entropy(model(inputs.to("cuda")).flatten(0, 1), labels.to("cuda").flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach().cpu()
        losses[step] = loss.detach()
        seen += (loss.detach() > 0).sum().cpu()
        counts = torch.empty(3, dtype=torch.int64, device="cuda").copy_(torch.arange(3))
        kept = torch.full((3,), 7)
        assert kept.copy_(counts).tolist() == [0, 1, 2]
        assert kept.copy_(torch.randint(9, (3,), device="cuda")).tolist() == [0, 1, 2]
        assert total.item() == seen.item() == step + 1 and losses.sum() == step + 1


if __name__ == "__main__":
    main()
