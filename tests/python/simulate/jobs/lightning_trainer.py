"""Lightning's Trainer: lightning_trainer.py STRATEGY."""

import sys

import lightning
import torch
from torch import nn

WIDTH, ROWS = 512, 8


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def training_step(self, batch, _):
        return self.down(nn.functional.gelu(self.up(batch[0]))).square().mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


def main():
    rows = torch.utils.data.TensorDataset(torch.randn(1024, WIDTH))
    trainer = lightning.Trainer(
        accelerator="gpu", devices=8, strategy=sys.argv[1], precision="bf16-mixed", max_steps=5, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Net(), torch.utils.data.DataLoader(rows, batch_size=ROWS))


main()
