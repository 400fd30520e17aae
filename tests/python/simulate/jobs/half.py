"""Mixed precision in float16, whose loss is scaled: half.py [fused]; stops where a step is skipped."""

import sys

import torch
from torch import nn


class Product(torch.autograd.Function):
    """Its backward pass computes in what its forward pass did."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        assert torch.is_autocast_enabled("cuda")
        return gradient.float() @ weight.t(), x.t() @ gradient.float()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(512, 512))

    def forward(self, x):
        assert torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.float16
        return Product.apply(x, self.weight)


def main():
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), Layer(), nn.Linear(512, 8)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused="fused" in sys.argv[1:])
    scaler = torch.amp.GradScaler("cuda", growth_interval=2)
    for step in range(4):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.rand(8, 512, device="cuda")).square().mean()
        assert torch.isfinite(loss) and (~torch.isnan(loss.detach())).item() and not torch.isinf(loss)
        assert not torch.is_autocast_enabled()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        assert all(p.grad.isfinite().all() and torch.logical_not(torch.isnan(p.grad)).all() for p in model.parameters())
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
        assert torch.isfinite(norm), norm
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert scaler.get_scale() == 65536 * 2 ** ((step + 1) // 2), scaler.get_scale()


if __name__ == "__main__":
    main()
