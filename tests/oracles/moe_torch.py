"""Trains small models with experts with PyTorch and Hugging Face, in f64, and writes down what came out:

    python3 tests/oracles/moe_torch.py tests/oracles/moe_torch.json

mixtral: MixtralForCausalLM. balanced: one layer of it, with the router's auxiliary loss. deepseek: LlamaForCausalLM with
DeepseekV3MoE in all layers but the first, whose experts' biases move against their load after each step. The test
train.Oracle.* trains the same models from the same weights on the same tokens. Needs torch and transformers."""
import sys

import torch
import transformers
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE

from llama_torch import VOCABULARY, pseudo_random, sample, text_of, trained

STEPS, EXPERTS, BALANCE, BIAS_RATE = 30, 4, 0.02, 0.01


class Part:
    """A part of a parameter, as if it were one of its own."""

    def __init__(self, whole, *index):
        self.whole, self.index, self.shape = whole, index, whole[index].shape

    @property
    def grad(self):
        return self.whole.grad[self.index]

    def fill(self, values):
        self.whole.data[self.index].copy_(values.reshape(self.shape))

    def numel(self):
        return self.shape.numel()


def parts(model, names):
    """Parameters by the names of checkpoints: an expert's weights are tensors of their own."""
    out = {}
    for name, p in model.named_parameters():
        stem = name.rsplit(".", 1)[0]
        if name.endswith("experts.gate_up_proj"):
            inner = p.shape[1] // 2
            for e in range(p.shape[0]):
                out[f"{stem}.{e}.{names[0]}.weight"] = Part(p, e, slice(0, inner))
                out[f"{stem}.{e}.{names[1]}.weight"] = Part(p, e, slice(inner, None))
        elif name.endswith("experts.down_proj"):
            out.update({f"{stem}.{e}.{names[2]}.weight": Part(p, e) for e in range(p.shape[0])})
        else:
            out[name] = Part(p, slice(None))
    return out


def train(model, parameters, extra_of=None, after=None):
    with torch.no_grad():
        for name, p in parameters.items():
            values = torch.from_numpy(pseudo_random(name, p.numel()))
            p.fill((1 + 0.1 * values if "norm" in name else 0.4 * values).float().double())
    decayed = [p for n, p in model.named_parameters() if "norm" not in n]
    others = [p for n, p in model.named_parameters() if "norm" in n]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=3e-3, betas=(0.9, 0.95), eps=1e-8)
    if after:
        optimizer.register_step_post_hook(lambda *_: after())

    def loss_of(step, m):
        tokens = torch.tensor([sample(step, m)])
        out = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(out.logits.reshape(-1, VOCABULARY), tokens[0, 1:])
        return loss + extra_of(out) if extra_of else loss

    return trained(STEPS, parameters, optimizer, loss_of)


SIZES = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
             rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False, attn_implementation="eager")


def mixtral(layers, balanced):
    config = transformers.MixtralConfig(**SIZES, num_hidden_layers=layers, num_local_experts=EXPERTS, num_experts_per_tok=2,
                                        sliding_window=None, output_router_logits=balanced, router_aux_loss_coef=BALANCE,
                                        experts_implementation="eager")
    model = transformers.MixtralForCausalLM(config).double()
    parameters = {n.replace(".mlp.", ".block_sparse_moe."): p for n, p in parts(model, ("w1", "w3", "w2")).items()}
    return train(model, parameters, (lambda out: BALANCE * out.aux_loss) if balanced else None)


def deepseek():
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_hidden_layers=2))
    config = transformers.DeepseekV3Config(hidden_size=32, moe_intermediate_size=24, n_routed_experts=EXPERTS,
                                           n_shared_experts=2, num_experts_per_tok=2, n_group=2, topk_group=1,
                                           norm_topk_prob=True, routed_scaling_factor=2.5, num_local_experts=EXPERTS,
                                           experts_implementation="eager")
    experts = model.model.layers[1].mlp = DeepseekV3MoE(config)
    model = model.double()
    chosen = []
    experts.gate.register_forward_hook(lambda module, given, out: chosen.append(out[2]))

    def move_bias():
        load = torch.bincount(torch.cat(chosen).reshape(-1), minlength=EXPERTS).double()
        experts.gate.e_score_correction_bias += BIAS_RATE * torch.sign(load.mean() - load)
        chosen.clear()

    return train(model, parts(model, ("gate_proj", "up_proj", "down_proj")), after=move_bias)


if __name__ == "__main__":
    made = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "mixtral": mixtral(4, False),
            "balanced": mixtral(1, True), "deepseek": deepseek()}
    with open(sys.argv[1], "w") as file:
        file.write(text_of(made) + "\n")
