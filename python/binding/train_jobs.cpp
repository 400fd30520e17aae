// Training jobs: their configuration, the ranks, and a job that is run step by step.
#include <optional>
#include "python/binding/training_types.h"
#include "tools/train/config_file.h"
#include "train/checkpoint/save_load.h"
#include "train/config/apply_config_keys.h"
#include "train/data/source.h"
#include "train/trainer/load_together.h"
#include "train/trainer/threads_per_rank.h"
#include "train/whole/rank_step.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;

using Tokens = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

TrainConfig parse(const std::string& name, const std::string& text, const std::vector<std::string>& changes) {
  tools::ReadConfig read = tools::parse_config(name, text, changes);
  return {std::move(read.job), std::move(read.notes)};
}

std::vector<std::pair<std::string, std::string>> settings(const TrainConfig& c) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const train::Setting& s : train::settings_of(c.job)) all.emplace_back(s.key, s.text);
  return all;
}

// group: a function from a parameter's name to the factor of its rate and to its weight decay.
void set_groups(TrainConfig& c, nb::callable group) {
  auto kept = std::make_shared<nb::object>(std::move(group));
  c.job.step.optimizer.group = [kept](const std::string& name) {
    const nb::gil_scoped_acquire held;
    const auto [rate, decay] = nb::cast<std::pair<double, double>>((*kept)(name));
    return train::ParameterGroup{rate, decay};
  };
}

JobOfPython make_job(const TrainConfig& c, const WorldOfPython& world, int threads) {
  JobOfPython made{.world = world.ranks};
  waiting([&] {
    made.own = std::make_shared<train::Job>(c.job.step, *world.ranks, train::compute_threads(*world.ranks, threads));
  });
  made.job = made.own.get();
  return made;
}

const train::Parameter& parameter_of(const JobOfPython& j, const std::string& name) {
  const train::Parameter* const found = j.get().parameters().find(name);
  if (found == nullptr) throw std::invalid_argument("this rank has no parameter '" + name + "'");
  return *found;
}

nb::list parameters(const JobOfPython& j) {
  nb::list all;
  for (const train::Parameter& p : j.get().parameters().all()) {
    const train::TensorSlice& s = p.slice;
    all.append(nb::make_tuple(p.name, nb::make_tuple(s.rows, s.columns), nb::make_tuple(s.row, s.row_count),
                              nb::make_tuple(s.column, s.column_count), p.decays, p.frozen));
  }
  return all;
}

void set_batch(JobOfPython& j, std::size_t micro, const Tokens& tokens, const Tokens& labels,
               const std::optional<Tokens>& starts) {
  const train::RankStep& step = j.get().step();
  if (micro >= step.micro_batches)
    throw std::invalid_argument("micro-batch " + std::to_string(micro) + ": expected 0 to " +
                                std::to_string(step.micro_batches - 1));
  if (step.config.cut_attention != starts.has_value())
    throw std::invalid_argument(std::string(starts ? "starts" : "no starts") + " of documents, and attention is " +
                                (step.config.cut_attention ? "" : "not ") + "cut");
  const auto expect = [&](const Tokens& t, const char* what, std::size_t below, bool may_lack) {
    if (t.shape(0) != step.config.micro_batch_size || t.shape(1) != step.config.seq_length)
      throw std::invalid_argument(std::string(what) + " are " + std::to_string(t.shape(0)) + " x " +
                                  std::to_string(t.shape(1)) + ": expected " +
                                  std::to_string(step.config.micro_batch_size) + " x " +
                                  std::to_string(step.config.seq_length));
    for (std::size_t i = 0; i < t.size(); ++i) {
      const std::int32_t v = t.data()[i];
      if ((v < 0 || static_cast<std::size_t>(v) >= below) && !(may_lack && v == train::no_label))
        throw std::invalid_argument(std::string(what) + " have " + std::to_string(v) + ": expected 0 to " +
                                    std::to_string(below - 1));
    }
  };
  expect(tokens, "tokens", step.config.model.vocab_size, false);
  expect(labels, "labels", step.config.model.vocab_size, true);
  if (starts) expect(*starts, "starts", step.config.seq_length, false);
  j.get().set_batch(micro,
                    {.tokens = tokens.data(), .labels = labels.data(), .starts = starts ? starts->data() : nullptr});
}

std::pair<double, double> run_step(JobOfPython& j, std::int64_t step, double rate) {
  if (step < 1) throw std::invalid_argument("step " + std::to_string(step) + ": steps are counted from 1");
  train::Job::Result r;
  waiting([&] { r = j.get().run({.step = step, .learning_rate = rate}); });
  return {r.loss, r.norm};
}

void fill(JobOfPython& j, const std::string& name, const Floats& values) {
  const train::TensorSlice& s = parameter_of(j, name).slice;
  if (values.size() != s.rows * s.columns)
    throw std::invalid_argument(name + " has " + std::to_string(s.rows) + " x " + std::to_string(s.columns) +
                                " elements in all, and there are " + std::to_string(values.size()) + " values");
  j.get().fill(parameter_of(j, name), [&](std::uint64_t i) { return values.data()[i]; });
}

std::string save(JobOfPython& j, const std::string& root, std::int64_t step) {
  waiting([&] {
    train::CheckpointSaver checkpoints(root, *j.world, {.keep = {.most = -1}});
    checkpoints.save(j.get(), step);
    checkpoints.wait();
  });
  return root + "/" + train::tag_name(step);
}

std::int64_t load(JobOfPython& j, const std::string& from) {
  std::int64_t step = 0;
  waiting([&] {
    const auto [source, unreadable] = train::open_together(*j.world, from);
    if (!unreadable.empty()) throw std::invalid_argument(unreadable);
    const auto [state, fault] = train::load_together(*j.world, j.get(), *source);
    if (!fault.empty()) throw std::invalid_argument(fault);
    if (state) step = source->info().step;
  });
  return step;
}

}  // namespace

void add_train_jobs(nb::module_& m) {
  nb::class_<TrainConfig>(m, "TrainConfig")
      .def_ro("notes", &TrainConfig::notes)
      .def_prop_ro("settings", &settings)
      .def_prop_ro("seq_length", [](const TrainConfig& c) { return c.job.step.seq_length; })
      .def_prop_ro("max_steps", [](const TrainConfig& c) { return c.job.trainer.max_steps; })
      .def_prop_ro("log_every_n_steps", [](const TrainConfig& c) { return c.job.trainer.log_every_n_steps; })
      .def_prop_ro("validation_samples",  // the most that a validation reads; None: all of them, or a share
                   [](const TrainConfig& c) {
                     const std::int64_t batches = c.job.trainer.limit_val_batches;
                     const std::size_t batch = c.job.step.global_batch_size;
                     return batches < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(batches) * batch);
                   })
      .def_prop_ro("cut_attention", [](const TrainConfig& c) { return c.job.step.cut_attention; })
      .def_prop_ro("learning_rate", [](const TrainConfig& c) { return c.job.step.optimizer.learning_rate; })
      .def_prop_ro("folder",
                   [](const TrainConfig& c) {
                     const std::string& in = c.job.experiment.directory;
                     return in.empty() ? in : in + "/" + c.job.step.name;
                   })
      .def("set_groups", &set_groups, "group"_a);
  m.def("train_config", &parse, "name"_a, "text"_a, "changes"_a);

  nb::class_<WorldOfPython>(m, "World")
      .def("__init__",
           [](WorldOfPython* at) {
             std::shared_ptr<ccl::Communicator> ranks;
             waiting([&] { ranks = ccl::Communicator::from_environment(); });
             new (at) WorldOfPython{std::move(ranks)};
           })
      .def_prop_ro("rank", [](const WorldOfPython& w) { return w.ranks->rank(); })
      .def_prop_ro("ranks", [](const WorldOfPython& w) { return w.ranks->ranks(); })
      .def("barrier", [](WorldOfPython& w) { waiting([&] { w.ranks->barrier(); }); })
      .def("finalize", [](WorldOfPython& w) { waiting([&] { w.ranks->finalize(); }); });

  nb::class_<JobOfPython>(m, "Job")
      .def("__init__", [](JobOfPython* at, const TrainConfig& c, const WorldOfPython& w,
                          int threads) { new (at) JobOfPython(make_job(c, w, threads)); })
      .def_prop_ro("micro_batches", [](const JobOfPython& j) { return j.get().step().micro_batches; })
      .def_prop_ro("micro_batch_size", [](const JobOfPython& j) { return j.get().step().config.micro_batch_size; })
      .def_prop_ro("data_rank", [](const JobOfPython& j) { return j.get().step().place.data; })
      .def_prop_ro("data_ranks", [](const JobOfPython& j) { return j.get().step().mesh.shape().data; })
      .def_prop_ro("parameters", &parameters)
      .def("set_batch", &set_batch, "micro"_a, "tokens"_a, "labels"_a, "starts"_a = nb::none())
      .def("run", &run_step, "step"_a, "learning_rate"_a)
      .def("values", [](const JobOfPython& j,
                        const std::string& name) { return as_array(j.get().values(parameter_of(j, name))); })
      .def("gradients",
           [](const JobOfPython& j, const std::string& name) {
             const train::Parameter& p = parameter_of(j, name);
             if (p.frozen) throw std::invalid_argument(name + " is frozen, and has no gradient");
             std::vector<float> values;
             waiting([&] { values = j.get().gradients(p); });
             return as_array(std::move(values));
           })
      .def("fill", &fill, "name"_a, "values"_a)
      .def("save", &save, "root"_a, "step"_a)
      .def("load", &load, "path"_a);
}

}  // namespace trellis::binding
