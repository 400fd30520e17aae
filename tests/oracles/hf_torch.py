"""Trains small models of Hugging Face's families in f64, generates with them, and writes down what came out:

    python3 tests/oracles/hf_torch.py tests/oracles/hf_torch.json

The tests train.HfOracle.* read the same config.json and weights as a folder, train, generate, and write the folder anew.
Weights and tokens come from the formulas of llama_torch.py. Needs torch and transformers."""
import json
import sys

import torch
import transformers

import llama_torch
from llama_torch import VOCABULARY, pseudo_random, sample, text_of, trained
from moe_torch import parts

STEPS, NEW_TOKENS, SCALE = 6, 16, 0.8
WIDE = dict(vocab_size=67, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, max_position_embeddings=128, bos_token_id=None,
            eos_token_id=None, pad_token_id=None)
GROUPED = dict(WIDE, intermediate_size=48, num_key_value_heads=2)
LLAMA3 = dict(rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, original_max_position_embeddings=32)
TUNED_YARN = dict(YARN, beta_fast=8.0, beta_slow=2.0, mscale=0.8, mscale_all_dim=0.5, truncate=False)
DYNAMIC = dict(rope_type="dynamic", rope_theta=5000.0, factor=3.0)
# Factors of 8 and of 3 pairs. Sequences of 16 are trained on: longer than 4 positions, and no longer than 24.
LONGROPE = dict(rope_type="longrope", rope_theta=5000.0, factor=4.0, original_max_position_embeddings=24,
                short_factor=[1.0, 1.1, 1.3, 1.7, 2.0, 2.5, 3.0, 3.5], long_factor=[1.0, 1.5, 2.0, 4.0, 6.0, 9.0, 15.0, 30.0])
PHI_ROPE = dict(rope_type="longrope", rope_theta=5000.0, original_max_position_embeddings=4, partial_rotary_factor=0.75,
                short_factor=[1.0, 1.1, 1.3], long_factor=[1.0, 2.5, 9.0])
DRY = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)

CONFIGS = {
    "llama": transformers.LlamaConfig(**GROUPED, head_dim=16, rope_parameters=LLAMA3),
    "llama_yarn": transformers.LlamaConfig(**GROUPED, head_dim=16, rope_parameters=YARN),
    "llama_longrope": transformers.LlamaConfig(**GROUPED, head_dim=16, rope_parameters=LONGROPE),
    "phi3": transformers.Phi3Config(**dict(GROUPED, max_position_embeddings=32), original_max_position_embeddings=4,
                                    rope_parameters=PHI_ROPE),
    "qwen2_yarn": transformers.Qwen2Config(**GROUPED, rope_parameters=TUNED_YARN),
    "mistral": transformers.MistralConfig(**GROUPED, sliding_window=6),
    "qwen2": transformers.Qwen2Config(**GROUPED, tie_word_embeddings=True),
    "qwen3": transformers.Qwen3Config(**GROUPED, head_dim=12),
    # A size of heads with which no token stands between two experts in f32.
    "mixtral": transformers.MixtralConfig(**GROUPED, head_dim=12, num_local_experts=4, num_experts_per_tok=2, sliding_window=None),
    "qwen3_moe": transformers.Qwen3MoeConfig(**GROUPED, head_dim=12, num_experts=4, num_experts_per_tok=2,
                                             moe_intermediate_size=24, norm_topk_prob=True),
    "qwen3_moe_scores": transformers.Qwen3MoeConfig(**GROUPED, num_experts=4, num_experts_per_tok=2,
                                                    moe_intermediate_size=24, norm_topk_prob=False),
    "neox": transformers.GPTNeoXConfig(**WIDE, intermediate_size=64),
    "neox_sequential": transformers.GPTNeoXConfig(**WIDE, intermediate_size=64, use_parallel_residual=False),
    "gpt2": transformers.GPT2Config(vocab_size=67, n_embd=32, n_layer=4, n_head=4, n_positions=128, bos_token_id=None, eos_token_id=None,
                                    pad_token_id=None, **DRY),
}


def is_norm(name):
    return "norm" in name or ".ln_" in name


def saved(model):
    """Parameters by the names under which save_pretrained writes them."""
    if model.config.model_type == "mixtral":
        return {n.replace(".mlp.", ".block_sparse_moe."): p for n, p in parts(model, ("w1", "w3", "w2")).items()}
    names = parts(model, ("gate_proj", "up_proj", "down_proj"))
    if model.config.model_type == "gpt_neox":
        names["embed_out.weight"] = names.pop("lm_head.weight")
    return names


def value_of(name, n):
    values = torch.from_numpy(pseudo_random(name, n))
    return (0.1 * values if "bias" in name else 1 + 0.1 * values if is_norm(name) else SCALE * values).float().double()


def greedy(model, prompt):
    """The tokens, and by how much the closest choice was won: f32 has to see the same winner."""
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
                         max_new_tokens=NEW_TOKENS, output_scores=True, return_dict_in_generate=True)
    best = [s[0].topk(2).values for s in out.scores]
    return {"prompt": prompt, "tokens": out.sequences[0, len(prompt):].tolist(), "margin": min(float(b[0] - b[1]) for b in best)}


def run(config):
    config._attn_implementation = config._experts_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        for name, p in saved(model).items():
            p.fill(value_of(name, p.numel()))
    out = {"config": json.loads(config.to_json_string(use_diff=False)),
           "tensors": {n: list(p.shape) for n, p in saved(model).items()}}
    out["config"]["architectures"] = [type(model).__name__]
    out["short"] = greedy(model, sample(0, 0)[:5])
    out["long"] = greedy(model, sum((sample(1, i) for i in range(5)), [])[:81])
    decayed = [p for n, p in model.named_parameters() if not is_norm(n) and "bias" not in n]
    others = [p for n, p in model.named_parameters() if is_norm(n) or "bias" in n]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=3e-3, betas=(0.9, 0.95), eps=1e-8)

    def loss_of(step, m):
        tokens = torch.tensor([sample(step, m)])
        logits = model(tokens[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.reshape(-1, config.vocab_size), tokens[0, 1:])

    done = trained(STEPS, saved(model), optimizer, loss_of)
    out["losses"], out["norms"] = done["losses"], done["norms"]
    return out


def dynamic_frequencies(length):
    """Of a model for 16 positions, with so many of them."""
    config = transformers.LlamaConfig(**dict(GROUPED, max_position_embeddings=16), head_dim=16, rope_parameters=DYNAMIC)
    frequencies, factor = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=length)
    assert factor == 1
    return frequencies.tolist()


if __name__ == "__main__":
    assert llama_torch.VOCABULARY == VOCABULARY < WIDE["vocab_size"]
    made = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__, "scale": SCALE}
    made["dynamic_rope"] = dynamic_frequencies(64)
    made.update({name: run(config) for name, config in CONFIGS.items()})
    with open(sys.argv[1], "w") as file:
        file.write(text_of(made) + "\n")
