// All that a configuration file says: the step, and what the trainer does around it.
#pragma once

#include <string>
#include <vector>

#include "train/config/config.h"

namespace trellis::train {

struct TrainerConfig {
  std::int64_t max_steps = 100;
  std::int64_t log_every_n_steps = 1;
  std::int64_t val_check_interval = 0;    // steps; 0: only at the end
  std::int64_t limit_val_batches = -1;    // -1: all; 0: there is no validation
  double limit_val_share = 1;             // share of the batches that the data has, 0 to 1
  std::int64_t num_sanity_val_steps = 0;  // batches before the first step; -1: all
  double peak_tflops = 0;                 // of a rank; MFU is relative to it; 0: no MFU
  int threads = -1;                       // of a rank; 0: one for each core; -1: one for each core that is its own
  Rank devices = 0, num_nodes = 0;        // a node's ranks, and nodes; 0: as launched
  std::string untrained = "";             // why the run can be laid out but not trained; empty: it can be trained
};

struct DataConfig {
  std::vector<std::string> train_path;      // token files, one after the other
  std::vector<double> weights;              // of each file, if files are blended; none: every epoch reads all of each
  std::vector<std::string> val_path;        // none: there is no validation
  std::size_t token_bytes = 0;              // of a plain .bin: 2 or 4
  std::vector<std::size_t> special_tokens;  // BERT's CLS, SEP, MASK; none: the last three of the vocabulary
  std::size_t prefetch = 2;                 // batches that are read ahead
  bool mask_ends = false;                   // eod_mask_loss: the end of a document does not predict the next one
  bool packing = true;                      // samples are cut from one stream; else each is a document
};

struct ExperimentConfig {
  std::string directory = "";  // exp_dir or explicit_log_dir; empty: nothing is written
  bool tensorboard = true;     // create_tensorboard_logger
  bool resume = false;         // resume_if_exists
  bool resume_ignore_no_checkpoint = true;
  std::string resume_from = "";          // resume_from_checkpoint: a tag's folder, or a .safetensors file
  std::string hf = "";                   // model.hf: a folder of Hugging Face, with whose weights a new run begins
  bool weights_only = false;             // weight_init_only: training begins anew with the weights loaded
  bool force = false;                    // resume although the checkpoint is of another configuration or data
  bool checkpoints = true;               // create_checkpoint_callback
  std::int64_t every_n_train_steps = 0;  // 0: only at the end
  std::int64_t save_top_k = 1;           // -1: all, 0: none
  std::string monitor = "global_step";   // global_step, loss or val_loss
  std::string mode = "";                 // max or min is best; empty: min of a loss, max of global_step
  bool save_last = false;                // the newest is kept in addition to the best save_top_k
  bool masters = true;                   // use_master_weights_in_ckpt
  bool asynchronous = false;
  // The folder of proved steps (compiler_cache_url); empty: none, or EXP_DIR/steps where `trellis train` sets it.
  std::string cache = "";
  bool retry_failed = false;
  bool log_parameter_norm = false, log_gradient_norm = true;
};

// How Megatron's keys describe a layer, where no architecture is named. Empty: not said.
struct LayerWords {
  std::string architecture = {};  // the name, if one is given
  std::string activation = {}, normalization = {}, positions = {}, bias = {};
};

struct JobConfig {
  StepConfig step;
  TrainerConfig trainer;
  DataConfig data;
  ExperimentConfig experiment;
  LayerWords words = {};
};

}  // namespace trellis::train
