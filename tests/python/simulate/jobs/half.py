"""Mixed precision in float16, whose loss is scaled: half.py [fused]; stops where a step is skipped."""

import sys

import torch
from torch import nn


def main():
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), fused="fused" in sys.argv[1:])
    scaler = torch.amp.GradScaler("cuda", growth_interval=2)
    for step in range(4):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.rand(8, 512, device="cuda")).square().mean()
        assert torch.isfinite(loss) and (~torch.isnan(loss.detach())).item() and not torch.isinf(loss)
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
