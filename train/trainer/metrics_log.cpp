#include "train/trainer/metrics_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <system_error>

#include "text/number_parsing.h"
#include "train/checkpoint/shard.h"

namespace trellis::train {
namespace {

constexpr const char* head =
    "step,loss,learning_rate,gradient_norm,parameter_norm,seconds,tokens_per_second,flops_per_second,"
    "validation_loss,mfu,hfu\n";

std::string number_or_none(double value, int digits) {
  return std::isnan(value) ? "" : fmt::format("{:.{}g}", value, digits);
}

// Adds empty values for the columns that a line of an earlier version lacks.
std::string padded(std::string line) {
  const auto commas = [](std::string_view text) { return std::ranges::count(text, ','); };
  for (auto has = commas(line); has < commas(head); ++has) line += ',';
  return line;
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t done, bool tensorboard)
    : csv_(folder / "metrics.csv") {
  std::filesystem::create_directories(folder);
  std::string kept = head;
  std::ifstream in(csv_);
  for (std::string line; std::getline(in, line);) {
    std::string_view rest = line;
    if (const auto step = text::take_number<std::int64_t>(rest); step && *step <= done) kept += padded(line) + "\n";
  }
  write_whole(csv_, kept);
  if (!tensorboard) return;
  drop_events_after(folder / "tensorboard", done);
  events_ = std::make_unique<TensorBoardEvents>(folder / "tensorboard");
}

void MetricsLog::add(const StepRecord& r) {
  std::ofstream out(csv_, std::ios::app);
  out << fmt::format("{},{:.17g},{:.9g},{:.9g},{:.9g},{:.6f},{:.1f},{:.4g},{},{},{}\n", r.step, r.loss, r.learning_rate,
                     r.gradient_norm, r.parameter_norm, r.seconds, r.tokens_per_second, r.flops_per_second,
                     number_or_none(r.validation_loss, 17), number_or_none(r.mfu, 4), number_or_none(r.hfu, 4));
  if (!out.flush()) throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), csv_.string());
  if (!events_) return;
  const auto asked_for = [](double norm) { return norm > 0 ? norm : std::numeric_limits<double>::quiet_NaN(); };
  const std::pair<const char*, double> scalars[] = {{"loss", r.loss},
                                                    {"learning_rate", r.learning_rate},
                                                    {"gradient_norm", asked_for(r.gradient_norm)},
                                                    {"parameter_norm", asked_for(r.parameter_norm)},
                                                    {"tokens_per_second", r.tokens_per_second},
                                                    {"flops_per_second", r.flops_per_second},
                                                    {"validation_loss", r.validation_loss},
                                                    {"mfu", r.mfu},
                                                    {"hfu", r.hfu}};
  for (const auto& [tag, value] : scalars)
    if (!std::isnan(value)) events_->scalar(tag, r.step, static_cast<float>(value));
}

void MetricsLog::scalar(const std::string& name, std::int64_t step, double value) {
  if (events_) events_->scalar(name, step, static_cast<float>(value));
}

}  // namespace trellis::train
