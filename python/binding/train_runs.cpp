// The trainer with parts that are written in Python: callbacks, data sources, learning rates.
#include "python/binding/training_types.h"
#include "train/trainer/trainer.h"

namespace trellis::binding {
namespace {

using namespace nb::literals;

// Calls on_event(name, what) in Python, which has the list of callbacks.
class Events : public train::Callback {
 public:
  Events(nb::object on_event, std::shared_ptr<ccl::Communicator> world)
      : on_event_(std::move(on_event)), world_(std::move(world)) {}
  // Call it with the GIL held.
  void close() {
    if (job_.is_valid()) nb::cast<JobOfPython&>(job_).job = nullptr;
    job_.reset(), on_event_.reset();
  }

  void on_train_start(train::TrainState& s) override {
    const nb::gil_scoped_acquire held;
    job_ = nb::cast(JobOfPython{.world = world_, .own = {}, .job = &s.job});
    tell(s, "on_train_start", nb::none());
  }
  void on_train_batch_start(train::TrainState& s, const train::Batch& b) override {
    const nb::gil_scoped_acquire held;
    tell(s, "on_train_batch_start", nb::cast(b.step));
  }
  void on_train_batch_end(train::TrainState& s, const train::StepRecord& r) override {
    const nb::gil_scoped_acquire held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    tell(s, "on_train_batch_end", nb::cast(r));
  }
  void on_validation_end(train::TrainState& s, double loss) override {
    const nb::gil_scoped_acquire held;
    tell(s, "on_validation_end", nb::cast(loss));
  }
  void on_save_checkpoint(train::TrainState& s) override {
    const nb::gil_scoped_acquire held;
    tell(s, "on_save_checkpoint", nb::none());
  }
  void on_train_end(train::TrainState& s, const train::TrainingResult& r) override {
    const nb::gil_scoped_acquire held;
    tell(s, "on_train_end", nb::cast(r.stopped));
  }

 private:
  // Calls on_event(), which returns whether training should stop, and named values to log.
  void tell(train::TrainState& s, const char* name, const nb::object& what) {
    const nb::object said = on_event_(name, s.step, job_, what);
    const auto [stop, figures] = nb::cast<std::pair<bool, std::vector<std::pair<std::string, double>>>>(said);
    s.stop = s.stop || stop;
    for (const auto& [figure, value] : figures) s.log(figure, value);
  }
  nb::object on_event_, job_;
  std::shared_ptr<ccl::Communicator> world_;
};

// read(number, tokens, labels, starts) in Python fills the arrays; starts, the first position that each token's
// attention sees, is None where attention is not cut.
class PythonSource : public train::DataSource {
 public:
  PythonSource(nb::object source, std::size_t length)
      : read_(source.attr("read")), samples_(nb::cast<std::uint64_t>(source.attr("samples"))), length_(length) {
    const auto [words, checksum] = nb::cast<std::pair<std::string, std::uint32_t>>(source.attr("identity"));
    identity_ = {words, samples_, checksum};
  }
  std::uint64_t samples() const override { return samples_; }
  void read(std::uint64_t number, const train::TokenSample& out) const override {
    const nb::gil_scoped_acquire held;
    const auto row = [&](std::int32_t* at) {
      return nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>(at, {length_}, nb::none())
          .cast(nb::rv_policy::reference);
    };
    read_(number, row(out.tokens), row(out.labels), out.starts == nullptr ? nb::object(nb::none()) : row(out.starts));
  }
  std::vector<train::DataFile> identity() const override { return {identity_}; }

 private:
  nb::object read_;
  std::uint64_t samples_;
  std::size_t length_;
  train::DataFile identity_;
};

std::function<double(std::int64_t)> rate_of(const nb::object& given) {
  if (given.is_none()) return {};
  return [given](std::int64_t step) {
    const nb::gil_scoped_acquire held;
    return nb::cast<double>(given(step));
  };
}

nb::list fit(const TrainConfig& config, const WorldOfPython& world, nb::object on_event, nb::object say,
             nb::object data, nb::object val_data, nb::object rate, const std::string& from) {
  const std::size_t length = config.job.step.seq_length;
  auto events = std::make_shared<Events>(std::move(on_event), world.ranks);
  train::TrainerParts parts;
  parts.callbacks = {events};
  if (!data.is_none()) parts.train_data = std::make_shared<PythonSource>(data, length);
  if (!val_data.is_none()) parts.val_data = std::make_shared<PythonSource>(val_data, length);
  parts.learning_rate = rate_of(rate);
  parts.hooks.say = [&](const std::string& text) {
    const nb::gil_scoped_acquire held;
    say(text);
  };
  train::TrainingResult ended;
  {
    train::Trainer trainer(config.job, *world.ranks, parts);
    try {
      waiting([&] { ended = trainer.fit(from); });
    } catch (...) {
      events->close();
      throw;
    }
  }
  events->close();
  nb::list history;
  for (const train::StepRecord& r : ended.history) history.append(nb::cast(r));
  return history;
}

}  // namespace

void add_train_runs(nb::module_& m) {
  nb::class_<train::StepRecord>(m, "StepRecord")
      .def_ro("step", &train::StepRecord::step)
      .def_ro("loss", &train::StepRecord::loss)
      .def_ro("learning_rate", &train::StepRecord::learning_rate)
      .def_ro("gradient_norm", &train::StepRecord::gradient_norm)
      .def_ro("seconds", &train::StepRecord::seconds)
      .def_ro("tokens_per_second", &train::StepRecord::tokens_per_second)
      .def_ro("mfu", &train::StepRecord::mfu)
      .def_ro("validation_loss", &train::StepRecord::validation_loss);
  m.def("train_fit", &fit, "config"_a, "world"_a, "on_event"_a, "say"_a, "data"_a.none(), "val_data"_a.none(),
        "learning_rate"_a.none(), "ckpt_path"_a = "");
}

}  // namespace trellis::binding
