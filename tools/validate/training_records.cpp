#include "tools/validate/training_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/train/config_file.h"

namespace trellis::tools {
namespace {

using measure::Record;
using nlohmann::json;

std::string text_of(const Record& r, const char* key) {
  if (const auto number = r.number(key)) return fmt::format("{}", *number);
  return r.word(key);
}

// The keys of the record's configuration: the model's, the setup's, what the record says, and its own corrections.
std::vector<std::string> keys_of(const json& all, const json& entry, const Record& r) {
  std::map<std::string, std::string> keys;
  const auto put = [&](const json& from) {
    for (const auto& [key, value] : from.items()) keys[key] = value.get<std::string>();
  };
  put(all.at("models").at(entry.at("model").get<std::string>()));
  put(all.at("setups").at(entry.at("setup").get<std::string>()));
  if (const std::string named = r.word("optimizer"); all.at("optimizers").contains(named))
    keys["model.optim.name"] = all.at("optimizers").at(named).get<std::string>();
  const auto say = [&](const char* key, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const std::string said = text_of(r, name); text::number<double>(said)) keys[key] = said;
  };
  say("data.seq_length", {"seq_len"});
  say("data.micro_batch_size", {"microbatch_per_worker", "micro_batch"});
  say("data.global_batch_size", {"global_batch"});
  say("distributed_strategy.tensor_model_parallel_size", {"tp"});
  say("distributed_strategy.pipeline_model_parallel_size", {"pp"});
  if (entry.contains("set")) put(entry.at("set"));
  std::vector<std::string> changes;
  for (const auto& [key, value] : keys) changes.push_back(fmt::format("{}={}", key, value));
  return changes;
}

double seconds_of(const Record& r, const train::StepConfig& config) {
  if (!(r.value > 0)) text::refuse("its value is {}: expected one above 0", r.value);
  const auto sequences = static_cast<double>(config.global_batch_size);
  if (r.unit == "seq/s") return sequences / r.value;
  if (r.unit == "tokens/s") return sequences * static_cast<double>(config.seq_length) / r.value;
  if (r.unit == "step/s") return 1 / r.value;
  if (const auto unit = measure::seconds_of(r.unit)) return r.value * *unit;
  text::refuse("{}: expected seq/s, tokens/s, step/s or a time", r.unit);
}

std::string machine_of(const json& entry, const Record& r) {
  if (entry.contains("machine")) return entry.at("machine").get<std::string>();
  const std::string nodes = text_of(r, "nodes");
  return nodes == "1" ? "trn1.32xlarge" : fmt::format("trn1.32xlarge x {}", nodes);
}

}  // namespace

TrainingRecords training_records(const std::string& setups, const std::vector<Record>& records) try {
  TrainingRecords found;
  const json all = json::parse(setups);
  for (const json& each : all.at("apart"))
    for (const Record& r : records)
      if (r.id.starts_with(each.at("begins").get<std::string>())) found.apart[r.id] = each.at("why").get<std::string>();
  for (const json& entry : all.at("records")) {
    const auto id = entry.at("id").get<std::string>();
    const auto r = std::ranges::find(records, id, &Record::id);
    if (r == records.end()) continue;
    try {
      train::StepConfig config = parse_config(id, "", keys_of(all, entry, *r)).job.step;
      const double seconds = seconds_of(*r, config);
      found.records.push_back({.id = id,
                               .family = entry.at("family").get<std::string>(),
                               .rule = entry.value("rule", ""),
                               .fits = entry.value("fit", true),
                               .measured = seconds,
                               .config = std::move(config),
                               .machine = machine_of(entry, *r),
                               .software = entry.value("software", r->word("sdk")),
                               .ranks = entry.value("ranks", 0)});
    } catch (const std::invalid_argument& e) {
      found.faults[id] = e.what();
    }
  }
  return found;
} catch (const json::exception& e) {
  text::refuse("what training records were run with: {}", e.what());
}

FittableStep::FittableStep(const train::StepConfig& config, const sim::MachineSpec& spec,
                           const sim::StepOptions& options, train::Rank ranks)
    : machine_(spec),
      ranks_(ranks > 0 ? ranks : machine_.ranks()),
      step_(config, ranks_, machine_, options),
      several_(ranks_ > sim::ranks_of_host(machine_)) {}

double FittableStep::seconds_with(const sim::StepFactors& factors) {
  const sim::Time time = step_.time(factors);
  if (time == sim::forever) throw StepStopped();
  return sim::in_seconds(time);
}

double FittableStep::seconds(double exposed, double hosts, double level) {
  sim::StepFactors f = step_.factors();
  f.hosts = several_ ? 1 + hosts : 1;
  f.software *= level;
  for (auto& [communicator, part] : f.exposed) part = exposed;
  return seconds_with(f);
}

double FittableStep::usual() { return seconds_with(step_.factors()); }

}  // namespace trellis::tools
