#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "measure/published/record.h"
#include "sim/cluster/machine/machine.h"
#include "sim/cluster/price/run.h"
#include "text/number.h"

// Training over several nodes, from the record of one node: the compute time is from that record. Several nodes add the
// sum of gradients over all of them, after the last backward pass, not overlapped with it.
namespace trellis::measure {
namespace {

using schedule::Rank;

struct Published {
  std::string_view model;
  double parameters;
};
constexpr std::array models = {
    Published{"BERT-Large Ph1", 340e6},  // Devlin et al. 2018
    Published{"GPT3-6.7B", 6.7e9},       // Brown et al. 2020, table 2.1
};

double integer(const Record& r, const char* key) {
  if (const auto value = r.number(key)) return *value;
  const std::string text = r.word(key);
  std::string_view rest = text;
  return text::take_number<double>(rest).value_or(0);
}

// The same training on one node, with the same number of sequences a node in each step.
const Record* on_one_node(const Record& r, const std::vector<Record>& all) {
  const auto same = [&](const Record& other) {
    const bool alike = std::ranges::all_of(std::array{"model", "dtype", "optimizer"},
                                           [&](const char* key) { return other.word(key) == r.word(key); });
    return alike && other.unit == "seq/s" && integer(other, "nodes") == 1 && integer(other, "tp") == integer(r, "tp") &&
           integer(other, "pp") == integer(r, "pp") &&
           integer(other, "global_batch") * integer(r, "nodes") == integer(r, "global_batch");
  };
  const auto found = std::ranges::find_if(all, same);
  return found == all.end() ? nullptr : &*found;
}

// Every group of ranks with the same part of the model sums its gradients around a ring, all groups at once.
sim::Time sum_of_gradients(double bytes, Rank tp, Rank nodes) {
  const sim::Machine machine = sim::machine_named(fmt::format("trn1.32xlarge x {}", nodes));
  const Rank ranks = machine.ranks() / tp;
  const sim::CompiledSchedule ring(schedule::algorithm_named("ring"),
                                   {.collective = schedule::Collective::all_reduce, .dims = {ranks}, .channels = 4});
  std::vector<sim::SimulatedCollective> collectives;
  for (Rank part = 0; part < tp; ++part) {
    sim::SimulatedCollective collective{.pattern = &ring, .bytes = bytes};
    for (Rank i = 0; i < ranks && tp > 1; ++i) collective.members.push_back(i * tp + part);
    collectives.push_back(std::move(collective));
  }
  return sim::Run(machine, std::move(collectives), {}).run();
}

std::optional<Answer> train(const Record& r, const std::vector<Record>& all) {
  if (r.kind() != "train") return std::nullopt;
  const bool efficiency = r.says("scaling efficiency");
  if (!efficiency && r.unit != "seq/s") return Answer::no("it follows from the throughput and the model's operations");
  const Rank nodes = whole_count("nodes", integer(r, "nodes")), tp = whole_count("tp", integer(r, "tp"));
  if (nodes < 2) return Answer::no("one node's compute, which a model's name does not give");
  const auto model = std::ranges::find(models, r.word("model"), &Published::model);
  const Record* const one = on_one_node(r, all);
  if (one == nullptr) return Answer::no("no record of one node with as much work for each to take the compute from");
  if (model == models.end() || tp < 1) return Answer::no("the size of the gradients isn't given");
  const double element = r.word("dtype") == "fp32" ? 4 : 2;
  const double bytes = model->parameters * element / tp;
  const double step = integer(*one, "global_batch") / one->value;
  const double more = sim::in_seconds(sum_of_gradients(bytes, tp, nodes) - sum_of_gradients(bytes, tp, 1));
  const std::string by =
      fmt::format("{:.2f} s of {}, and {:.0f} ms more for sums of {:.0f} MB", step, one->id, more * 1e3, bytes * 1e-6);
  if (efficiency) return Answer{.simulated = 100 * step / (step + more), .by = by};
  return Answer{.simulated = integer(r, "global_batch") / (step + more), .by = by};
}

const Model registered("training", train);

}  // namespace
}  // namespace trellis::measure
