#include "train/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "device/memory_accounting.h"
#include "kernels/reduce/dot.h"
#include "text/refuse.h"
#include "train/cache/proof.h"
#include "train/checkpoint/save_load.h"
#include "train/config/apply_config_keys.h"
#include "train/config/optimizer_config.h"
#include "train/config/plugin_code.h"
#include "train/step/run.h"
#include "train/trainer/agreement.h"
#include "train/trainer/batch_prefetcher.h"
#include "train/trainer/metrics_log.h"
#include "train/trainer/resume.h"
#include "train/trainer/run_folder.h"
#include "train/trainer/threads_per_rank.h"
#include "train/trainer/validation.h"
#include "train/whole/job.h"
#include "train/whole/model_flops.h"
#include "train/whole/zero_bubble_memory.h"

namespace trellis::train {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

class Training {
 public:
  Training(const JobConfig& config, ccl::Communicator& world, const TrainerParts& parts)
      : config_(config), world_(world), parts_(parts), hooks_(parts.hooks) {}

  TrainingResult run() {
    check();
    own_folder();
    prove_step();
    const int threads = compute_threads(world_, config_.trainer.threads);
    job_ = std::make_unique<Job>(config_.step, world_, threads);
    source_ = parts_.train_data ? source_of(parts_.train_data, config_, job_->step())
                                : source_of(config_.data.train_path, config_.data.weights, config_, job_->step());
    count();
    resume();
    if (validates()) validation_ = std::make_unique<Validation>(config_, *job_, parts_.val_data);
    open_outputs();
    if (config_.trainer.num_sanity_val_steps != 0 && validation_)
      say(fmt::format("validation loss before the first step {:.4f}",
                      validation_->loss(config_.trainer.num_sanity_val_steps)));
    TrainState state{
        .config = config_,
        .world = world_,
        .job = *job_,
        .step = result_.last_step,
        .log = [&](const auto& name, double v) { write([&] { metrics_->scalar(name, result_.last_step, v); }); }};
    const auto each = [&](auto call, const auto&... of) {
      state.step = result_.last_step;
      for (const auto& callback : parts_.callbacks) (callback.get()->*call)(state, of...);
    };
    if (hooks_.begin) hooks_.begin(result_.last_step + 1);
    each(&Callback::on_train_start);
    BatchPrefetcher batches(*source_, job_->step(), result_.last_step + 1, config_.data.prefetch);
    while (result_.last_step < config_.trainer.max_steps && !result_.stopped) {
      const Batch batch = batches.next();
      each(&Callback::on_train_batch_start, batch);
      StepRecord record = step(batch);
      each(&Callback::on_train_batch_end, record);
      const bool unsaved = checkpoints_ && checkpoints_->failed();
      result_.stopped =
          any_rank(world_, state.stop || (hooks_.stop && hooks_.stop()) || unsaved || !unwritten_.empty());
      if (result_.stopped && checkpoints_) checkpoints_->wait();  // throws where a save failed beside training
      const bool last = result_.stopped || result_.last_step == config_.trainer.max_steps;
      if (validation_ && due(config_.trainer.val_check_interval, last)) record.validation_loss = validate();
      if (!std::isnan(record.validation_loss)) each(&Callback::on_validation_end, record.validation_loss);
      note(record, last);
      if (checkpoints_ && due(config_.experiment.every_n_train_steps, last)) {
        save();
        each(&Callback::on_save_checkpoint);
      }
    }
    if (checkpoints_) checkpoints_->wait();
    each(&Callback::on_train_end, result_);
    refuse_together(world_, unwritten_);  // last, so that the final checkpoint is written even so
    return std::move(result_);
  }

 private:
  bool due(std::int64_t every, bool last) const { return last || (every > 0 && result_.last_step % every == 0); }

  bool validates() const {
    return (parts_.val_data || !config_.data.val_path.empty()) && config_.trainer.limit_val_batches != 0;
  }

  double validate() {
    validation_loss_ = validation_->loss(config_.trainer.limit_val_batches, config_.trainer.limit_val_share);
    if (world_.rank() == 0 && hooks_.validated) hooks_.validated(result_.last_step, validation_loss_);
    return validation_loss_;
  }

  void save() {
    checkpoints_->save(*job_, result_.last_step, monitored(), result_.stopped);
    if (world_.rank() == 0 && hooks_.saved) hooks_.saved(result_.last_step);
  }

  double monitored() const {
    const std::string& monitor = config_.experiment.monitor;
    if (monitor == "val_loss") return validation_loss_;
    return monitor == "loss" ? result_.history.back().loss : static_cast<double>(result_.last_step);
  }

  void say(const std::string& text) const {
    if (world_.rank() == 0 && hooks_.say) hooks_.say(text);
  }

  void check() {
    check_foreign_code();
    check_values(config_);
    const TrainerConfig& t = config_.trainer;
    if (!t.untrained.empty()) throw std::invalid_argument(t.untrained);
    const Rank asked = t.devices * std::max<Rank>(1, t.num_nodes);
    if (t.devices > 0 && asked != world_.ranks())
      text::refuse("trainer.devices x num_nodes is {}: expected {}, the ranks that were launched", asked,
                   world_.ranks());
    if (t.num_nodes > 0 && world_.ranks() % t.num_nodes != 0)
      text::refuse("trainer.num_nodes is {}: expected a divisor of {}, the ranks that were launched", t.num_nodes,
                   world_.ranks());
    if (config_.data.train_path.empty() && !parts_.train_data)
      throw std::invalid_argument("data.train_path is missing: expected a file of text or tokens");
    if (const auto& weights = config_.data.weights;
        !weights.empty() && weights.size() != config_.data.train_path.size())
      text::refuse("data.train_weights has {} entries: expected {}, one for each train_path", weights.size(),
                   config_.data.train_path.size());
    rate_schedule_named(config_.step.schedule.name);
    const ExperimentConfig& e = config_.experiment;
    if (e.monitor != "global_step" && e.monitor != "loss" && e.monitor != "val_loss")
      text::refuse("exp_manager.checkpoint_callback_params.monitor is {}: expected global_step, loss or val_loss",
                   e.monitor);
    if (e.monitor == "val_loss" && !validates())
      throw std::invalid_argument(
          "exp_manager.checkpoint_callback_params.monitor is val_loss: expected data.val_path, from which it comes, "
          "and "
          "trainer.limit_val_batches other than 0");
    check_files();
  }

  // Reports missing files before a step is laid out, which may take long.
  void check_files() {
    const auto expect = [](const char* key, const std::string& path) {
      const bool tokens = fs::exists(path + ".idx") || fs::exists(fs::path(path).replace_extension(".idx"));
      if (!fs::exists(path) && !tokens)
        throw std::system_error(ENOENT, std::generic_category(), fmt::format("{} {}", key, path));
    };
    for (const std::string& path : config_.data.train_path) expect("data.train_path", path);
    for (const std::string& path : config_.data.val_path) expect("data.val_path", path);
    const std::string& from = config_.experiment.resume_from;
    if (!from.empty()) expect("exp_manager.resume_from_checkpoint", from);
    if (!config_.experiment.hf.empty()) expect("model.hf", config_.experiment.hf);
  }

  // Rank 0 proves the step, or finds it proved; all hear of a fault.
  void prove_step() {
    Proof proof;
    if (world_.rank() == 0) {
      const std::string& folder = config_.experiment.cache;
      proof = folder.empty() ? prove(config_.step, world_.ranks())
                             : ProofCache(folder).proof(config_.step, world_.ranks(), config_.experiment.retry_failed);
      if (proof.remembered && !proof.fault.empty()) proof.fault += " (remembered in " + folder + "; --retry-failed)";
      if (proof.fault.empty()) peak_ = proof.peaks[0];
      if (!folder.empty() && proof.fault.empty())
        say(proof.remembered ? fmt::format("the step is in the cache {}: a hit", folder)
                             : fmt::format("the step was laid out and proved in {:.2f} s", proof.seconds));
    }
    refuse_together(world_, proof.fault);
  }

  void own_folder() {
    const ExperimentConfig& e = config_.experiment;
    if (e.directory.empty()) return;
    std::string fault;
    if (world_.rank() == 0) try {
        folder_ = std::make_unique<RunFolder>(root());
        if (!folder_->locked())
          say(fmt::format("{}: its file system has no locks, so nothing keeps another job out", root().string()));
      } catch (const std::exception& error) {
        fault = error.what();
      }
    refuse_together(world_, fault);
  }

  // Counts a step's FLOPs on all ranks, and reports the memory that a rank takes.
  void count() {
    const RankStep& step = job_->step();
    for (const Operation& o : step.program.operations) flops_ += o.flops;
    model_flops_ = model_flops(step);
    world_.all_reduce(&flops_, &flops_, 1, kernels::DType::f64);
    world_.all_reduce(&model_flops_, &model_flops_, 1, kernels::DType::f64);
    peak_flops_ = config_.trainer.peak_tflops * 1e12 * world_.ranks();
    if (world_.rank() != 0) return;
    std::string text = fmt::format("{:.1f} MB a rank", static_cast<double>(job_->runner().memory().bytes) / 1e6);
    for (std::size_t c = 0; c < category_count; ++c)
      if (peak_.by_category[c] > 0)
        text += fmt::format("{}{} {:.1f}", c == 0 ? ": " : ", ", name(static_cast<Category>(c)),
                            static_cast<double>(peak_.by_category[c]) / 1e6);
    say(text);
    if (const std::string undone = undone_recomputation(config_.step, world_.ranks()); !undone.empty()) say(undone);
    if (peak_flops_ > 0)
      say(fmt::format(
          "MFU: {:.4g} FLOPs a step, {} times those of the forward passes' products, over seconds x {} ranks x {} "
          "TFLOP/s; HFU: {:.4g}, all that are computed",
          model_flops_, passes_of_model(config_.step), world_.ranks(), config_.trainer.peak_tflops, flops_));
  }

  fs::path root() const { return fs::path(config_.experiment.directory) / config_.step.name; }

  // Whether a run that loads this tag continues the folder's run: it is the last tag that was saved there.
  bool continues(const fs::path& tag) const {
    const std::vector<std::string> tags = complete_tags(root() / "checkpoints");
    std::error_code error;
    return !tags.empty() && fs::equivalent(tag, root() / "checkpoints" / tags.back(), error);
  }

  void resume() {
    const ExperimentConfig& e = config_.experiment;
    if (world_.rank() == 0 && (!e.directory.empty() || !e.resume_from.empty()))
      origin_ = origin_of(config_, source_->identity(), library_version());
    Resume resume(config_, world_, *job_, origin_, [this](const std::string& text) { say(text); });
    const fs::path own = root() / "checkpoints";
    const bool here = e.resume && !e.directory.empty() && !any_rank(world_, complete_tags(own).empty());
    if (here) {
      result_.last_step = resume.from_newest(own);
      continues_ = result_.last_step > 0;
    } else if (!e.resume_from.empty()) {
      const bool newest = continues(e.resume_from);
      result_.last_step = resume.from(e.resume_from);
      continues_ = newest && result_.last_step > 0;
    } else if (e.resume && !e.directory.empty()) {
      continues_ = true;  // continues a run that ended before its first checkpoint
      if (!e.resume_ignore_no_checkpoint) text::refuse("{}: no complete checkpoint to resume from", own.string());
    }
    if (!here && e.resume_from.empty() && !e.hf.empty()) resume.from(e.hf);
    if (result_.last_step >= config_.trainer.max_steps)
      say(fmt::format("nothing is left to train: trainer.max_steps is {}, and step {} is done",
                      config_.trainer.max_steps, result_.last_step));
  }

  void open_outputs() {
    const ExperimentConfig& e = config_.experiment;
    if (e.directory.empty()) return;
    world_.barrier();  // all ranks have loaded the files that are moved now
    const std::string fault = world_.rank() != 0 ? "" : fault_of([&] {
      if (folder_ && !continues_ && folder_->used())
        say(fmt::format("the run that was in {} is in {}", folder_->path().string(), folder_->set_aside().string()));
      metrics_ = std::make_unique<MetricsLog>(root(), result_.last_step, e.tensorboard);
    });
    refuse_together(world_, fault);
    if (!e.checkpoints || e.save_top_k == 0) return;
    const bool lowest = e.mode.empty() ? e.monitor != "global_step" : e.mode == "min";
    checkpoints_ = std::make_unique<CheckpointSaver>(
        root() / "checkpoints", world_,
        SaveOptions{e.masters, e.asynchronous, {e.save_top_k, e.monitor, lowest, e.save_last}, origin_});
  }

  StepRecord step(const Batch& batch) {
    for (std::size_t m = 0; m < batch.tokens.size(); ++m) job_->set_batch(m, batch.micro(m));
    const auto begin = std::chrono::steady_clock::now();
    const double waited = job_->runner().seconds_exchanging();
    const StepInputs now{batch.step, parts_.learning_rate ? parts_.learning_rate(batch.step)
                                                          : learning_rate(config_.step.optimizer, config_.step.schedule,
                                                                          batch.step, config_.trainer.max_steps)};
    const Job::Result r = job_->run(now);
    if (!std::isfinite(r.loss) || !std::isfinite(r.norm)) not_finite(now, r);
    StepRecord record{.step = batch.step,
                      .loss = r.loss,
                      .learning_rate = now.learning_rate,
                      .gradient_norm = config_.experiment.log_gradient_norm ? r.norm : 0};
    record.seconds = Seconds(std::chrono::steady_clock::now() - begin).count();
    const double tokens = static_cast<double>(config_.step.global_batch_size * config_.step.seq_length);
    record.tokens_per_second = tokens / record.seconds;
    record.flops_per_second = flops_ / record.seconds;
    if (peak_flops_ > 0) {
      record.mfu = model_flops_ / record.seconds / peak_flops_;
      record.hfu = flops_ / record.seconds / peak_flops_;
    }
    result_.last_step = batch.step;
    computing_ = record.seconds - (job_->runner().seconds_exchanging() - waited);
    return record;
  }

  // Records every log_every_n_steps-th step, the last one, and steps with a validation.
  void note(StepRecord record, bool last) {
    const std::int64_t every = std::max<std::int64_t>(1, config_.trainer.log_every_n_steps);
    if (record.step % every == 0 || last || !std::isnan(record.validation_loss)) {
      record.slow_rank = slow_rank(computing_);
      if (config_.experiment.log_parameter_norm) record.parameter_norm = parameter_norm();
      write([&] { metrics_->add(record); });
      if (world_.rank() == 0 && hooks_.step) hooks_.step(record);
    }
    result_.history.push_back(record);
  }

  // Adds figures on rank 0. Where that fails, training ends after the next step, on every rank.
  void write(const std::function<void()>& figures) {
    if (metrics_ && unwritten_.empty()) unwritten_ = fault_of(figures);
  }

  // The rank that computes longest, if that is clearly longer than the median; -1: no rank stands out.
  std::int64_t slow_rank(double computing) {
    std::vector<double> all(static_cast<std::size_t>(world_.ranks()));
    world_.all_gather(&computing, all.data(), 1, kernels::DType::f64);
    const auto slowest = std::ranges::max_element(all);
    const std::int64_t rank = slowest - all.begin();
    const double most = *slowest;
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all.size() > 2 && most > 1.5 * all[all.size() / 2] && most > 0.05 ? rank : -1;
  }

  double parameter_norm() {
    job_->runner().settle();
    const MeshShape& shape = job_->step().mesh.shape();
    const double replicas = size_of(shape, Axis::sharding);  // ranks with the same parameters, experts aside
    double sum = 0;
    for (const OptimizerState& s : job_->step().states) {
      const Parameter& p = *s.parameter;
      const Tensor& t = job_->step().program.tensor(p.value);
      if (p.owner)
        sum += p.share * (p.of_expert ? shape.expert : 1) / replicas *
               kernels::sum_of_squares(t.type, job_->runner().at(p.value), p.slice.elements());
    }
    world_.all_reduce(&sum, &sum, 1, kernels::DType::f64);
    return std::sqrt(sum);
  }

  // Runs the step again, checks every result, and names the first that went wrong on any rank. Received results come
  // after all computed ones, because stages have programs of their own: a NaN may come earlier in the program of its
  // receiver than in that of the rank that computed it.
  [[noreturn]] void not_finite(const StepInputs& now, const Job::Result& r) {
    const Runner::Found found = job_->runner().first_not_finite(now);
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max(), of_exchanges = none / 2;
    const std::int64_t mine = found.operation < 0 ? none : found.operation + (found.computed ? 0 : of_exchanges);
    std::int64_t first = mine;
    world_.all_reduce(&first, &first, 1, kernels::DType::i64, {kernels::Reduction::min});
    const std::string where =
        first == none   ? "when it is run again, all results are finite"
        : mine == first ? fmt::format("the first that is no finite number is {} on rank {}", found.name, world_.rank())
                        : "another rank names where it began";
    throw std::runtime_error(
        fmt::format("step {}: the loss is {} and the gradients' norm {}; {}", now.step, r.loss, r.norm, where));
  }

  const JobConfig& config_;
  ccl::Communicator& world_;
  const TrainerParts& parts_;
  const TrainerHooks& hooks_;
  std::unique_ptr<RunFolder> folder_;  // of rank 0; first, so that it is locked for as long as files are written
  bool continues_ = false;             // this run goes on with the one whose files are in the folder
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<CheckpointSaver> checkpoints_;
  std::unique_ptr<MetricsLog> metrics_;
  std::string unwritten_;  // why figures could not be written
  TrainingResult result_;
  schedule::PeakMemory peak_;
  std::unique_ptr<Validation> validation_;
  double validation_loss_ = std::numeric_limits<double>::quiet_NaN();  // the last one
  TrainingProvenance origin_;                                          // of rank 0
  double flops_ = 0, model_flops_ = 0;                                 // of a step, of all ranks
  double peak_flops_ = 0;                                              // of all ranks, in a second; 0: not known
  double computing_ = 0;  // seconds of the last step without what it waited for others
};

}  // namespace

Trainer::Trainer(JobConfig config, ccl::Communicator& world, TrainerParts parts)
    : config_(std::move(config)), world_(world), parts_(std::move(parts)) {}

TrainingResult Trainer::fit(const fs::path& from) {
  JobConfig config = config_;
  if (!from.empty()) config.experiment.resume_from = from;
  return Training(config, world_, parts_).run();
}

TrainingResult train(const JobConfig& config, ccl::Communicator& world, const TrainerHooks& hooks) {
  return Trainer(config, world, {.hooks = hooks}).fit();
}

}  // namespace trellis::train
