// The keys of the run: how long it is, what it logs, and which checkpoints it keeps.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "train/config/config_key.h"

namespace trellis::train {
namespace {

constexpr double most_ranks_of_node = 1024, most_nodes = 65'536, most_threads = 1024;

// A folder's name in exp_dir: it must not lead out of it.
std::string set_name(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  const bool plain =
      std::ranges::none_of(w, [](unsigned char letter) { return letter == '/' || std::iscntrl(letter); });
  if (!plain || w.empty() || w == "." || w == "..") refuse(v, "the name of a folder, without '/'");
  return c.step.name = w, "";
}

std::string set_clip(JobConfig& c, const KeyValue& v) {
  const double most = decimal(v, word(v), at_least(0));
  c.step.optimizer.clip = most > 0;
  c.step.optimizer.max_norm = most > 0 ? most : 1;
  return "";
}

std::string clip_text(const JobConfig& c) { return text_of(c.step.optimizer.clip ? c.step.optimizer.max_norm : 0.0); }

// As Lightning reads it: a whole number is batches, a decimal is a share of all.
std::string set_limit(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  TrainerConfig& t = c.trainer;
  t.limit_val_batches = -1, t.limit_val_share = 1;
  if (w.find_first_of(".eE") == w.npos) return parse(v, t.limit_val_batches, at_least(-1)), "";
  t.limit_val_share = decimal(v, w, between(0, 1));
  if (t.limit_val_share == 0) t.limit_val_batches = 0;
  return "";
}

std::string set_monitor(JobConfig& c, const KeyValue& v) {
  const std::pair<const char*, const char*> known[] = {{"global_step", "global_step"},
                                                       {"step", "global_step"},
                                                       {"loss", "loss"},
                                                       {"reduced_train_loss", "loss"},
                                                       {"val_loss", "val_loss"}};
  for (const auto& [said, meant] : known)
    if (word(v) == said) return c.experiment.monitor = meant, "";
  refuse(v, "global_step, loss or val_loss");
}

std::string set_mode(JobConfig& c, const KeyValue& v) {
  if (word(v) != "min" && word(v) != "max") refuse(v, "max or min, whichever is best");
  return c.experiment.mode = word(v), "";
}

std::string set_wiring(JobConfig& c, const KeyValue& v) {
  for (Wiring w : {Wiring::plain, Wiring::trn1, Wiring::logic2})
    if (word(v) == name(w)) return c.step.wiring = w, "";
  refuse(v, "plain, trn1 or logic2");
}

}  // namespace

std::vector<ConfigKey> trainer_keys() {
  const KeySection k{"trainer"};
  using enum ChangeOnResume;
  return {
      {.name = "name", .apply = set_name},
      only("model_source", {"hf", "megatron"}, "the names of keys of both are read"),
      key("seed", course, at_least(0), [](auto& c) { return &c.step.seed; }),
      k("devices", silent, between(0, most_ranks_of_node), [](auto& c) { return &c.trainer.devices; }),
      k("num_nodes", silent, between(0, most_nodes), [](auto& c) { return &c.trainer.num_nodes; }),
      k("max_steps", said, between(1, most_steps), [](auto& c) { return &c.trainer.max_steps; }),
      k("threads", silent, between(-1, most_threads), [](auto& c) { return &c.trainer.threads; }),
      k("peak_tflops", silent, at_least(0), [](auto& c) { return &c.trainer.peak_tflops; }),
      idle("trainer.max_epochs", "trainer.max_steps decides; data begins anew when it ends"),
      k("log_every_n_steps", silent, between(1, most_steps), [](auto& c) { return &c.trainer.log_every_n_steps; }),
      k("val_check_interval", silent, between(0, most_steps), [](auto& c) { return &c.trainer.val_check_interval; }),
      {.name = "trainer.limit_val_batches", .apply = set_limit},
      k("num_sanity_val_steps", silent, between(-1, most_steps),
        [](auto& c) { return &c.trainer.num_sanity_val_steps; }),
      {.name = "trainer.gradient_clip_val", .apply = set_clip, .resumed = said, .text = clip_text},
      idle("trainer.lnc", "ranks are processes of the host"),
      idle("trainer.sequential_move_factor", "parameters are made where they are used"),
      {.name = "trainer.wiring",
       .apply = set_wiring,
       .resumed = said,
       .text = [](const JobConfig& c) { return std::string(name(c.step.wiring)); }},
  };
}

std::vector<ConfigKey> experiment_keys() {
  const auto k = [](const char* name, auto... rest) {
    return key(fmt::format("exp_manager.{}", name), ChangeOnResume::silent, std::move(rest)...);
  };
  const std::string callback = "exp_manager.checkpoint_callback_params.";
  return {
      k("explicit_log_dir", [](auto& c) { return &c.experiment.directory; }),
      also("exp_manager.exp_dir", "exp_manager.explicit_log_dir"),
      k("create_tensorboard_logger", [](auto& c) { return &c.experiment.tensorboard; }),
      k("resume_if_exists", [](auto& c) { return &c.experiment.resume; }),
      k("resume_ignore_no_checkpoint", [](auto& c) { return &c.experiment.resume_ignore_no_checkpoint; }),
      k("resume_from_checkpoint", [](auto& c) { return &c.experiment.resume_from; }),
      k("create_checkpoint_callback", [](auto& c) { return &c.experiment.checkpoints; }),
      k("checkpoint_callback_params.every_n_train_steps", between(0, most_steps),
        [](auto& c) { return &c.experiment.every_n_train_steps; }),
      k("checkpoint_callback_params.save_top_k", between(-1, most_steps),
        [](auto& c) { return &c.experiment.save_top_k; }),
      {.name = callback + "monitor", .apply = set_monitor},
      {.name = callback + "mode", .apply = set_mode},
      k("checkpoint_callback_params.save_last", [](auto& c) { return &c.experiment.save_last; }),
      idle(callback + "filename", "a tag is named by its step"),
      absent(callback + "train_time_interval", "checkpoints are counted in steps: every_n_train_steps"),
      k("checkpoint_callback_params.use_master_weights_in_ckpt", [](auto& c) { return &c.experiment.masters; }),
      k("log_parameter_norm", [](auto& c) { return &c.experiment.log_parameter_norm; }),
      k("log_gradient_norm", [](auto& c) { return &c.experiment.log_gradient_norm; }),
      k("async_checkpointing", [](auto& c) { return &c.experiment.asynchronous; }),
      idle("exp_manager.save_xser", "a checkpoint has one form"),
      idle("exp_manager.load_xser", "a checkpoint has one form"),
      idle("exp_manager.save_bf16", "parameters are saved in their own type"),
      idle("exp_manager.ckpt_ptl_version", "a checkpoint has one form"),
      idle("exp_manager.enable_recovery_time_instrumentation", "the log says how long loading took"),
  };
}

}  // namespace trellis::train
