"""Configurations of trellis train: mistakes are named, files of NxD Training are read."""
import unittest

import program
from small_run import CONFIG, sets, trellis


class TrainConfig(program.Case):
    def setUp(self):
        self.root = self.new_folder()

    def test_mistakes_are_named(self):
        for change, words in {"data.seq_lenth=3": "did you mean 'data.seq_length'?",
                              "trainer.max_steps=soon": "expected a whole number",
                              "model.vocab_size=10": "README.md is 35",
                              "model.num_attention_heads=5": "expected a multiple of num_attention_heads 5",
                              "model.num_layers=100000000": "model.num_layers is '100000000': expected a whole number, 1 to 4096",
                              "trainer.max_steps=-5": "trainer.max_steps is '-5': expected a whole number, 1 to",
                              "trainer.gradient_clip_val=nan": "trainer.gradient_clip_val is 'nan': expected a number, 0 or more",
                              "model.optim.sched.min_lr=5": "model.optim.sched.min_lr is 5: expected at most model.optim.lr, 0.003",
                              "trainer.num_nodes=2": "expected a divisor of 1, the ranks that were launched",
                              "name=../outside": "name is '../outside': expected the name of a folder",
                              "data.prefetch=1000000": "data.prefetch is '1000000': expected a whole number, 0 to 1024",
                              "model.activations_checkpoint_layers=[99]": "model.activations_checkpoint_layers has 99: expected layers 0 to 1",
                              "data.global_batch_size=100000000": "in 100000000 micro-batches: expected at most 65536",
                              "model.vocab_size=1000000000000": "model.vocab_size is '1000000000000': expected a whole number, 2 to",
                              "distributed_strategy.context_parallel_size=2": "1 ranks: expected a multiple of tensor x pipeline x context"}.items():
            with self.subTest(change):
                ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root), "--set", change)
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertIn(words, ran.stderr)

    def test_a_mistake_in_a_file_is_told_with_its_line(self):
        config = self.root / "wrong.yaml"
        config.write_text("trainer:\n  max_steps: 4\n  log_every_n_steps: 0\n")
        ran = trellis("train", str(config))
        self.assertEqual(ran.returncode, 2, ran.stdout)
        self.assertIn(f"{config}, line 3: trainer.log_every_n_steps is '0': expected a whole number, 1 to", ran.stderr)

    def test_a_file_with_the_keys_of_nxd_training_is_read(self):
        config = self.root / "megatron.yaml"
        config.write_text("""
name: gpt
model_source: megatron
trainer: {devices: 4, num_nodes: 2, max_steps: 100, limit_val_batches: 0.0, limit_test_batches: 0, check_val_every_n_epoch: null}
exp_manager:
  exp_dir: null
  checkpoint_callback_params: {model_parallel_size: "${multiply:${distributed_strategy.tensor_model_parallel_size}, 2}"}
distributed_strategy: {tensor_model_parallel_size: 2, sequence_parallel: True}
data:
  data_prefix: [1.0, /nonexistent/text_document]
  seq_length: ${model.encoder_seq_length}
  global_batch_size: 8
  tokenizer: {library: megatron, type: GPT2BPETokenizer}
model:
  encoder_seq_length: 64
  max_position_embeddings: ${.encoder_seq_length}
  activation: gelu
  normalization: layernorm
  position_embedding_type: learned_absolute
  has_bias: True
  optim: {name: adamw, capturable: False, sched: {name: CosineAnnealing, max_steps: "${trainer.max_steps}"}}
precision: {type: mixed_precision, xla_use_bf16: '0', master_weights: False}
""")
        shown = trellis("train", "show", str(config))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("8 ranks: tensor 2, pipeline 1, data 4; 2 micro-batches", shown.stdout)
        self.assertIn("6 notes on the configuration:\n  ", shown.stdout)
        for key in ("trainer.limit_test_batches", "data.tokenizer", "model.optim.capturable", "precision.master_weights"):
            self.assertIn(f"  {key} has no effect here: ", shown.stdout)
        experts = trellis("train", "show", str(config), *sets(model__moe__num_experts=8, model__moe__top_k=2,
                                model__moe__capacity_factor=2.0, model__moe__dropout=0.0, model__activation="swiglu", model__normalization="rmsnorm", model__position_embedding_type="rope",
                                model__has_bias="false", distributed_strategy__expert_model_parallel_size=4))
        self.assertEqual(experts.returncode, 0, experts.stderr)
        self.assertIn("experts sent", experts.stdout)
        self.assertIn("8 experts, 2 for a token, shared out over 4 data-parallel ranks; each takes 2 times its even share", experts.stdout)
        shared = trellis("train", "show", str(config), "--set", "model.fusions.ring_attention=true", "--set", "distributed_strategy.context_parallel_size=2")
        self.assertIn("8 ranks: tensor 2, pipeline 1, data 2, context 2 (a ring of keys and values); 4 micro-batches", shared.stdout)
        refused = trellis("train", "show", str(config), "--set", "model.rope_scaling.rope_type=mrope", "--set", "model.activation=swiglu")
        self.assertEqual(refused.returncode, 2, refused.stdout)
        self.assertIn("2 mistakes: ", refused.stderr)
        self.assertIn("expected default, linear, dynamic, llama3, yarn or longrope; others are not built", refused.stderr)
        self.assertIn("no architecture has model.activation swiglu, model.normalization layernorm", refused.stderr)

    def test_a_step_that_no_memory_holds_is_told_with_its_size(self):
        ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root, model__hidden_size=2**18, model__intermediate_size=2**20))
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stderr, r"not enough memory: this rank's step takes \d+\.\d GB, and this machine has \d+\.\d GB")

    def test_adapters_of_nothing_are_refused(self):
        ran = trellis("train", CONFIG, *sets(exp_manager__exp_dir=self.root, model_alignment_strategy__peft__lora_rank=4,
                                             model_alignment_strategy__peft__target_modules="[query_key_value]"))
        self.assertEqual(ran.returncode, 2, ran.stdout)
        self.assertIn("target_modules has 'query_key_value': expected some of q_proj, k_proj,", ran.stderr)

    def test_a_step_with_more_passes_than_can_be_laid_out_is_refused(self):
        many = sets(model__num_layers=4096, data__global_batch_size=1024)
        ran = trellis("train", "show", CONFIG, "--ranks", "1", *many)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        self.assertIn("4096 of them on a rank, and data.global_batch_size 1024 is 1024 micro-batches: expected at most", ran.stderr)


if __name__ == "__main__":
    unittest.main()
