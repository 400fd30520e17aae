"""A convolution of the data, with a bias, and a transposed one behind it; a product into a tensor that is given."""

import torch
from torch import nn


def main():
    model = nn.Sequential(nn.Conv2d(3, 256, 3, padding=1), nn.ConvTranspose2d(256, 128, 2, 2)).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    a, b, c = (torch.rand(*shape, device="cuda") for shape in ((8, 32), (32, 16), (8, 16)))
    for _ in range(3):
        model(torch.rand(1, 3, 32, 32, device="cuda")).square().mean().backward()
        torch.mm(a, b, out=c)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
