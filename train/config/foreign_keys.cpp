// Keys of NxD Training, NeMo and Megatron without a counterpart here. Most are accepted, with the reason why they have
// no effect; the others are accepted only with the value that describes what is done here.
#include "train/config/config_key.h"

namespace trellis::train {
namespace {

ConfigKey only_false(const char* name, const char* why) { return only(name, {"false"}, why); }

std::vector<ConfigKey> of_trainer() {
  return {
      also("exp_manager.name", "name"),
      idle("exp_manager.log_local_rank_0_only", "rank 0 alone writes"),
      idle("exp_manager.checkpoint_callback_params.model_parallel_size", "it follows from the layout"),
      idle("trainer.check_val_every_n_epoch", "trainer.val_check_interval counts steps"),
      idle("trainer.limit_test_batches", "there is no test after training"),
      idle("precision.xla_use_bf16", "it is of precision.type manual, and the type decides"),
      idle("precision.xla_downcast_bf16", "it is of precision.type manual, and the type decides"),
      idle("precision.neuron_rt_stochastic_rounding_en", "it is of precision.type manual, and the type decides"),
      idle("precision.master_weights", "it is of precision.type manual, and the type decides"),
      idle("precision.fp32_grad_acc", "model.optim.use_fp32_grad_acc says it"),
      idle("precision.fp32_grads_cc", "gradients are summed in fp32"),
      idle("model.optim.capturable", "there is no graph to capture"),
      only_false("model_alignment_strategy.peft.load_lora_from_ckpt",
                 "adapters are loaded where the checkpoint that is resumed has them"),
      only_false("model_alignment_strategy.peft.merge_lora", "`trellis train checkpoint weights --merge` does it"),
      only_false("model_alignment_strategy.peft.merge_sharded_lora",
                 "`trellis train checkpoint weights --merge` does it"),
      idle("model_alignment_strategy.peft.save_lora_base", "a checkpoint has the weights and the adapters"),
      idle("model_alignment_strategy.peft.save_lora_config_adapter", "a checkpoint has its configuration"),
  };
}

std::vector<ConfigKey> of_data() {
  return {
      only("data.data_impl", {"mmap"}, "an index and its tokens"),
      idle("data.dataloader_type", "each epoch has all samples once, in an order of its own"),
      idle("data.index_mapping_dir", "the order of samples is computed"),
      idle("data.skip_warmup", "nothing is read before it is needed"),
      idle("data.validation_drop_last", "a part of a batch is left out"),
      idle("data.dev_choose_samples", "all samples are trained on"),
      idle("data.use_sft_style_data_module", "records of .jsonl files are prompts and responses"),
      only_false("data.reset_position_ids",
                 "rotary positions are relative: data.reset_attention_mask alone makes documents begin anew"),
      only_false("data.no_seqlen_plus_one_input_tokens", "a sample is one token longer than the sequence"),
      only_false("data.pad_samples_to_global_batch_size", "a part of a batch is left out"),
  };
}

std::vector<ConfigKey> of_model() {
  return {
      also("model.encoder_seq_length", "data.seq_length"),
      only("model.transformer_block_type", {"pre_ln"}, "norms come before attention and perceptron"),
      idle("model.use_cpu_initialization", "a rank makes its own parts of the weights"),
      idle("model.fuse_qkv", "the projections of queries, keys and values are kept apart"),
      idle("model.qkv_linear", "the projections of queries, keys and values are kept apart"),
      idle("model.apply_query_key_layer_scaling", "scores are summed in fp32 and need no scale by layer"),
      idle("model.use_scaled_init_method", "all weights are drawn with model.initializer_range"),
      idle("model.persist_layer_norm", "norms are kernels of their own"),
      idle("model.make_vocab_size_divisible_by", "tensor ranks share any model.vocab_size, the first having one more"),
      idle("model.ffn_dropout", "what the perceptron adds is dropped by model.hidden_dropout"),
  };
}

}  // namespace

std::vector<ConfigKey> foreign_keys() {
  std::vector<ConfigKey> all;
  for (const auto& list : {of_trainer, of_data, of_model})
    for (ConfigKey& k : list()) all.push_back(std::move(k));
  return all;
}

}  // namespace trellis::train
