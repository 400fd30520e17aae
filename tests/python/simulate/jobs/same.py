"""A Llama as a compiler would make its step: compiled, with gradients that lie in the buckets of
DistributedDataParallel and a fused optimizer. bench/simulate_beside_train.py holds it against the same model of
`trellis train`."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {"vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 8,
         "num_attention_heads": 16, "num_key_value_heads": 4, "max_position_embeddings": 2048}  # fmt: skip


def main() -> None:
    dist.init_process_group("nccl")
    model = torch.compile(LlamaForCausalLM(LlamaConfig(**SIZES)).to("cuda"))
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(3):
        tokens = torch.randint(0, SIZES["vocab_size"], (2, 2048), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
