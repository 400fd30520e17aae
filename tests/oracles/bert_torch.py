"""Trains a small BERT with PyTorch and Hugging Face's BertForPreTraining, in f64, and writes down what came out:

    python3 tests/oracles/bert_torch.py tests/oracles/bert_torch.json

The test train.Oracle.* trains the same model from the same weights on the same samples, which come from formulas. Needs
torch and transformers."""
import sys

import numpy
import torch
import transformers

from llama_torch import LENGTH, VOCABULARY, mixed, pseudo_random, sample, text_of, trained

STEPS, MASK = 10, VOCABULARY - 1


def masked_pair(step, number):
    """Tokens, types, labels (-100: nothing to guess), and 0 where the second part follows."""
    tokens = sample(step, number)[:-1]
    guessed = mixed((step * 1000 + number) * 300 + numpy.arange(LENGTH, dtype=numpy.uint64)) % 4 == 0
    labels = [t if g else -100 for t, g in zip(tokens, guessed)]
    tokens = [MASK if g else t for t, g in zip(tokens, guessed)]
    return tokens, [int(i >= LENGTH // 2) for i in range(LENGTH)], labels, int(mixed([step * 10 + number])[0] % 2)


def first_value(name, values):
    if "bias" in name:
        return 0.1 * values
    return 1 + 0.1 * values if "norm" in name.lower() else 0.4 * values


def train():
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=4,
                                     num_attention_heads=4, max_position_embeddings=32, layer_norm_eps=1e-5,
                                     pad_token_id=None, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager")
    model = transformers.BertForPreTraining(config).double()
    parameters = {name.replace("cls.predictions.decoder.bias", "cls.predictions.bias"): p for name, p in model.named_parameters()}
    with torch.no_grad():
        for name, p in parameters.items():
            p.copy_(first_value(name, torch.from_numpy(pseudo_random(name, p.numel())).reshape(p.shape)).float().double())
    plain = [n for n in parameters if "norm" in n.lower() or "bias" in n]
    optimizer = torch.optim.AdamW([{"params": [p for n, p in parameters.items() if n not in plain], "weight_decay": 0.1},
                                   {"params": [parameters[n] for n in plain], "weight_decay": 0.0}],
                                  lr=3e-3, betas=(0.9, 0.95), eps=1e-8)

    def loss_of(step, m):
        tokens, types, labels, follows = masked_pair(step, m)
        return model(input_ids=torch.tensor([tokens]), token_type_ids=torch.tensor([types]), labels=torch.tensor([labels]),
                     next_sentence_label=torch.tensor([follows])).loss

    return trained(STEPS, parameters, optimizer, loss_of)


if __name__ == "__main__":
    made = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "bert": train()}
    with open(sys.argv[1], "w") as file:
        file.write(text_of(made) + "\n")
