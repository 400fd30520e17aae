"""Trains a small Llama with PyTorch and Hugging Face's LlamaForCausalLM, in f64, and writes down what came out:

    python3 tests/oracles/llama_torch.py tests/oracles/llama_torch.json

The test train.Oracle.* trains the same model from the same weights on the same tokens. Weights and tokens come from the
formulas below, so that they need no files. Needs torch and transformers."""
import json
import sys

import numpy
import torch
import transformers

STEPS, MICRO_BATCHES, LENGTH, VOCABULARY = 50, 4, 16, 64


def mixed(numbers):
    """32 bits for each number: multiplications and shifts modulo 2^32, as C++ has them on uint32_t."""
    h = numpy.asarray(numbers, dtype=numpy.uint64) & 0xFFFFFFFF
    for _ in range(2):
        h = ((h ^ (h >> numpy.uint64(16))) * numpy.uint64(0x21F0AAAD)) & 0xFFFFFFFF
    return h ^ (h >> numpy.uint64(15))


def pseudo_random(name, count):
    """Numbers from -0.5 to 0.5 that depend on the tensor's name and the element's index."""
    start = sum((i + 1) * ord(c) for i, c in enumerate(name)) * 7919
    return mixed(start + numpy.arange(count, dtype=numpy.uint64)) / 2.0**32 - 0.5


def sample(step, number):
    bits = mixed((step * 1000 + number) * 100 + numpy.arange(LENGTH + 1, dtype=numpy.uint64))
    tokens = []
    for i, b in enumerate(int(b) for b in bits):
        tokens.append(b // 8 % VOCABULARY if i == 0 or b % 8 == 0 else (tokens[-1] * 5 + 3) % VOCABULARY)
    return tokens


def trained(steps, parameters, optimizer, loss_of):
    """Losses, gradients' norms, and the first step's gradients. `loss_of`: of a step's micro-batch, by their numbers."""
    out = {"losses": [], "norms": [], "gradients": {}}
    for step in range(steps):
        optimizer.zero_grad()
        total = 0.0
        for m in range(MICRO_BATCHES):
            loss = loss_of(step, m) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        if step == 0:
            for name, p in parameters.items():
                g = p.grad.reshape(-1).numpy()
                out["gradients"][name] = {"norm": float(numpy.linalg.norm(g)), "dot": float(g @ pseudo_random("dot." + name, g.size))}
        out["norms"].append(float(torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0)))
        optimizer.step()
        out["losses"].append(total)
    return out


def train(tied):
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=4,
                                      num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, rope_theta=10000.0,
                                      tie_word_embeddings=tied, attn_implementation="eager")
    model = transformers.LlamaForCausalLM(config).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            values = torch.from_numpy(pseudo_random(name, p.numel())).reshape(p.shape)
            p.copy_((1 + 0.1 * values if "norm" in name else 0.4 * values).float().double())
    decayed = [p for n, p in model.named_parameters() if "norm" not in n]
    others = [p for n, p in model.named_parameters() if "norm" in n]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=3e-3, betas=(0.9, 0.95), eps=1e-8)

    def loss_of(step, m):
        tokens = torch.tensor([sample(step, m)])
        logits = model(tokens[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), tokens[0, 1:])

    return trained(STEPS, dict(model.named_parameters()), optimizer, loss_of)


def text_of(value, indent=""):
    """JSON with a line for each list, and for each object of nothing but numbers or words."""
    if not isinstance(value, dict) or not any(isinstance(v, (dict, list)) for v in value.values()):
        return json.dumps(value)
    deeper = indent + " "
    return "{\n" + ",\n".join(f"{deeper}{json.dumps(k)}: {text_of(v, deeper)}" for k, v in value.items()) + f"\n{indent}}}"


if __name__ == "__main__":
    made = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "untied": train(False),
            "tied": train(True)}
    with open(sys.argv[1], "w") as file:
        file.write(text_of(made) + "\n")
