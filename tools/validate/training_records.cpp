#include "tools/validate/training_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

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
  keys["model.optim.name"] = all.at("optimizers").at(r.word("optimizer")).get<std::string>();
  keys["data.micro_batch_size"] = text_of(r, "microbatch_per_worker");
  keys["data.global_batch_size"] = text_of(r, "global_batch");
  keys["distributed_strategy.tensor_model_parallel_size"] = text_of(r, "tp");
  keys["distributed_strategy.pipeline_model_parallel_size"] = text_of(r, "pp");
  if (entry.contains("set")) put(entry.at("set"));
  std::vector<std::string> changes;
  for (const auto& [key, value] : keys) changes.push_back(fmt::format("{}={}", key, value));
  return changes;
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
      const std::string nodes = text_of(*r, "nodes");
      found.records.push_back({.id = id,
                               .family = entry.at("family").get<std::string>(),
                               .rule = entry.value("rule", ""),
                               .fits = entry.value("fit", true),
                               .measured = std::stod(text_of(*r, "global_batch")) / r->value,
                               .config = parse_config(id, "", keys_of(all, entry, *r)).job.step,
                               .machine = nodes == "1" ? "trn1.32xlarge" : fmt::format("trn1.32xlarge x {}", nodes),
                               .software = r->word("sdk")});
    } catch (const std::invalid_argument& e) {
      found.faults[id] = e.what();
    }
  }
  return found;
} catch (const json::exception& e) {
  throw std::invalid_argument(fmt::format("what training records were run with: {}", e.what()));
}

TrainingStep::TrainingStep(const train::Config& config, const sim::MachineSpec& spec, const std::string& software)
    : machine_(spec), step_(config, machine_.ranks(), machine_, {.software = software}) {
  several_ = machine_.ranks() > sim::ranks_of_host(machine_);
}

double TrainingStep::seconds(double exposed, double hosts, double level) {
  sim::StepFactors f = step_.factors();
  f.hosts = several_ ? 1 + hosts : 1;
  f.software *= level;
  for (auto& [communicator, part] : f.exposed) part = exposed;
  return sim::in_seconds(step_.time(f));
}

double TrainingStep::usual() { return sim::in_seconds(step_.time(step_.factors())); }

}  // namespace trellis::tools
