"""Hugging Face's Trainer with a small Llama, or Mixtral: trainer.py FOLDER [MODEL]."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, Trainer, TrainingArguments

SIZES = {"vocab_size": 2048, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
         "num_attention_heads": 8, "num_key_value_heads": 4, "max_position_embeddings": 1024}  # fmt: skip


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, number):
        tokens = torch.randint(0, 2048, (1024,))
        return {"input_ids": tokens, "labels": tokens}


def main():
    if sys.argv[2:] == ["mixtral"]:
        model = MixtralForCausalLM(MixtralConfig(**SIZES, num_local_experts=8, num_experts_per_tok=2)).bfloat16()
    else:
        model = LlamaForCausalLM(LlamaConfig(**SIZES))
    arguments = TrainingArguments(output_dir=sys.argv[1], per_device_train_batch_size=2, max_steps=5, bf16=True,
                                  report_to=[], save_strategy="no", disable_tqdm=True)  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=Tokens()).train()


main()
