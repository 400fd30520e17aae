"""BERT-large's first phase of pretraining on Wikipedia, as Neuron's sample has it: sequences of 128, micro-batches of
16, everything in bf16: bert.py MICRO_BATCHES."""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForPreTraining

ROWS, LENGTH = 16, 128


def batch():
    words = torch.randint(0, 30522, (ROWS, LENGTH))
    return {"input_ids": words, "attention_mask": torch.ones_like(words), "token_type_ids": torch.zeros_like(words),
            "labels": words, "next_sentence_label": torch.zeros(ROWS, dtype=torch.long)}  # fmt: skip


def main():
    dist.init_process_group("neuron")
    large = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    model = DistributedDataParallel(BertForPreTraining(large).bfloat16().to("neuron"))
    optimizer = torch.optim.AdamW(model.parameters())
    count = int(sys.argv[1])
    for _ in range(4):
        for micro in range(count):
            with contextlib.nullcontext() if micro == count - 1 else model.no_sync():
                loss = model(**{name: tensor.to("neuron") for name, tensor in batch().items()}).loss / count
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
