#include "tools/validate/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "measure/published/accuracy.h"
#include "tools/train/config_file.h"
#include "tools/train/step_pricing.h"

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

// One record's step, as a function of the two figures that are fitted.
class TrainingStep {
 public:
  TrainingStep(const json& all, const json& entry, const Record& r)
      : machine_(sim::machine_named(machine_of(r))),
        step_(parse_config(r.id, "", keys_of(all, entry, r)).job.step, machine_.ranks(), machine_,
              {.software = r.word("sdk")}) {
    several_ = machine_.ranks() > sim::ranks_of_host(machine_);
    for (const double exposed : {0.0, 1.0})
      for (const double hosts : {0.0, 1.0}) corners_.push_back(std::log(seconds(exposed, hosts)));
  }

  double seconds(double exposed, double hosts) {
    sim::StepFactors f = step_.factors();
    f.hosts = several_ ? 1 + hosts : 1;
    for (auto& [communicator, part] : f.exposed) part = exposed;
    return sim::in_seconds(step_.time(f));
  }
  double usual() { return sim::in_seconds(step_.time(step_.factors())); }
  double spread() const { return step_.factors().spread; }
  double flops_of_rank() const { return step_.flops() / machine_.ranks(); }

  // Between the corners, times are as good as linear in either figure: a fit needs no more.
  double about(double exposed, double hosts) const {
    const double without = std::exp(corners_[0]) * (1 - exposed) + std::exp(corners_[2]) * exposed;
    const double with = std::exp(corners_[1]) * (1 - exposed) + std::exp(corners_[3]) * exposed;
    return without * (1 - hosts) + with * hosts;
  }

 private:
  static std::string machine_of(const Record& r) {
    const std::string nodes = text_of(r, "nodes");
    return nodes == "1" ? "trn1.32xlarge" : fmt::format("trn1.32xlarge x {}", nodes);
  }

  sim::Machine machine_;
  StepOnMachine step_;
  bool several_ = false;
  std::vector<double> corners_;  // log seconds: exposed 0 and 1, hosts 0 and 1
};

struct Prepared {
  TrainingLine line;
  std::unique_ptr<TrainingStep> step;
};

// The two figures with the least sum of |log| errors of the records that may be fitted to; one of them may be held.
FittedFigures fitted(const std::vector<Prepared>& all, const std::string& without, bool with_hosts) {
  constexpr int fine = 50;
  FittedFigures best{.without = without};
  double least = std::numeric_limits<double>::infinity();
  for (int e = 0; e <= fine; ++e)
    for (int h = 0; h <= (with_hosts ? fine : 0); ++h) {
      const double exposed = static_cast<double>(e) / fine, hosts = 0.5 * h / fine;
      double sum = 0;
      for (const Prepared& p : all)
        if (p.line.fits && p.line.family != without)
          sum += std::abs(std::log(p.step->about(exposed, hosts) / p.line.measured));
      if (sum < least) least = sum, best.exposed = exposed, best.hosts = hosts;
    }
  return best;
}

// One MFU for each family: the median of its records.
void add_table(std::vector<Prepared>& all) {
  std::map<std::string, std::vector<double>> rates;
  for (const Prepared& p : all)
    if (p.line.fits) rates[p.line.family].push_back(p.step->flops_of_rank() / p.line.measured);
  for (auto& [family, of] : rates) std::ranges::sort(of);
  for (Prepared& p : all) {
    const auto& of = rates[p.line.family];
    if (!of.empty()) p.line.table = p.step->flops_of_rank() / of[of.size() / 2];
  }
}

std::vector<Prepared> prepared(const json& all, const std::vector<Record>& records, TrainingAnswer& answer) {
  std::vector<Prepared> steps;
  for (const json& entry : all.at("records")) {
    const auto id = entry.at("id").get<std::string>();
    const auto r = std::ranges::find(records, id, &Record::id);
    if (r == records.end()) continue;
    Prepared p{.line = {.id = id,
                        .family = entry.at("family").get<std::string>(),
                        .rule = entry.value("rule", ""),
                        .fits = entry.value("fit", true)}};
    try {
      p.line.measured = std::stod(text_of(*r, "global_batch")) / r->value;
      p.step = std::make_unique<TrainingStep>(all, entry, *r);
      steps.push_back(std::move(p));
    } catch (const std::invalid_argument& e) {
      answer.faults[id] = e.what();
    }
  }
  return steps;
}

void add_errors(TrainingAnswer& answer, std::vector<Prepared>& steps) {
  const auto note = [&](const std::string& how, const Prepared& p, double seconds) {
    if (p.line.fits) answer.errors[how].push_back(std::abs(std::log(seconds / p.line.measured)));
  };
  const FittedFigures one = fitted(steps, "", false), two = fitted(steps, "", true);
  answer.fitted.push_back(two);
  std::set<std::string> families;
  for (const Prepared& p : steps) families.insert(p.line.family);
  for (const std::string& family : families) answer.fitted.push_back(fitted(steps, family, true));
  for (Prepared& p : steps) {
    const auto& own = *std::ranges::find(answer.fitted, p.line.family, &FittedFigures::without);
    p.line.simulated = p.step->usual();
    p.line.left_out = p.step->seconds(own.exposed, own.hosts);
    p.line.low = p.line.left_out / p.step->spread(), p.line.high = p.line.left_out * p.step->spread();
    note("0 figures", p, p.step->seconds(1, 0));
    note("1 figure: exposed", p, p.step->seconds(one.exposed, 0));
    note("2 figures: exposed, hosts", p, p.step->seconds(two.exposed, two.hosts));
    note("2 figures, its family left out", p, p.line.left_out);
    note("a table: one MFU a family", p, p.line.table);
  }
}

}  // namespace

TrainingAnswer training_answer(const std::string& setups, const std::vector<Record>& records) {
  TrainingAnswer answer;
  const json all = json::parse(setups);
  for (const json& each : all.at("apart"))
    for (const Record& r : records)
      if (r.id.starts_with(each.at("begins").get<std::string>()))
        answer.apart[r.id] = each.at("why").get<std::string>();
  std::vector<Prepared> steps = prepared(all, records, answer);
  if (steps.empty()) return answer;
  add_table(steps);
  add_errors(answer, steps);
  for (Prepared& p : steps) answer.lines.push_back(std::move(p.line));
  return answer;
}

std::string training_text(const TrainingAnswer& a) {
  if (a.lines.empty()) return "";
  std::size_t width = 0, inside = 0, fit = 0;
  for (const TrainingLine& l : a.lines) width = std::max(width, l.id.size());
  std::string out = fmt::format("\n{:{}} {:>9} {:>9} {:>8} {:>9} {:>8} {}\n", "training: a step, in s", width,
                                "measured", "simulated", "error", "left out", "error", "");
  for (const TrainingLine& l : a.lines) {
    const bool in = l.inside();
    fit += l.fits, inside += l.fits && in;
    out +=
        fmt::format("{:{}} {:>9.2f} {:>9.2f} {:>+7.1f}% {:>9.2f} {:>+7.1f}% {}{}\n", l.id, width, l.measured,
                    l.simulated, 100 * (l.simulated / l.measured - 1), l.left_out, 100 * (l.left_out / l.measured - 1),
                    in ? "inside" : "outside", l.rule.empty() ? "" : (l.fits ? "; " : "; not fitted to: ") + l.rule);
  }
  out += fmt::format("\ninside the interval, its family left out: {} of {}\n\n{:32} {:>8} {:>9} {:>9}\n", inside, fit,
                     "training", "median", "90%", "worst");
  for (const auto& [how, errors] : a.errors) {
    const auto at = [&](double part) { return std::expm1(measure::value_at(errors, part)); };
    out += fmt::format("{:32} {:>7.1f}% {:>8.1f}% {:>8.1f}%\n", how, 100 * at(0.5), 100 * at(0.9), 100 * at(1));
  }
  for (const FittedFigures& f : a.fitted)
    out += fmt::format("fitted {:24} exposed {:.2f}, hosts {:.2f}\n",
                       f.without.empty() ? "to all" : "without " + f.without, f.exposed, f.hosts);
  for (const auto& [id, why] : a.faults) out += fmt::format("not priced: {}: {}\n", id, why);
  return out;
}

}  // namespace trellis::tools
