// A small Llama on a pipeline, for tests of steps as values.
#pragma once

#include "train/config/config.h"

namespace trellis::train {

inline StepConfig pipelined(Rank tensor, Rank pipeline, Rank chunks, const char* schedule = "") {
  StepConfig c;
  c.model = {.vocab_size = 64,
             .hidden_size = 32,
             .num_layers = 8,
             .num_attention_heads = 4,
             .num_key_value_heads = 2,
             .intermediate_size = 48,
             .tie_word_embeddings = true};
  c.strategy = {.tensor = tensor,
                .pipeline = pipeline,
                .virtual_pipeline = chunks,
                .sequence_parallel = tensor > 1,
                .zero1 = true,
                .schedule = schedule};
  c.seq_length = 16, c.global_batch_size = 16;
  return c;
}

}  // namespace trellis::train
