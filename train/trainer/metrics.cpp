#include "train/trainer/metrics.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <system_error>

#include "train/checkpoint/shard.h"

namespace trellis::train {
namespace {

constexpr const char* head =
    "step,loss,learning_rate,gradient_norm,parameter_norm,seconds,tokens_per_second,flops_per_second,"
    "validation_loss\n";

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& folder, std::int64_t done, bool tensorboard)
    : csv_(folder / "metrics.csv") {
  std::filesystem::create_directories(folder);
  std::string kept = head;
  std::ifstream in(csv_);
  for (std::string line; std::getline(in, line);) {
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error == std::errc{} && end != line.data() && step <= done) kept += line + "\n";
  }
  write_whole(csv_, kept);
  if (tensorboard) events_ = std::make_unique<EventFile>(folder / "tensorboard");
}

void MetricsLog::add(const StepRecord& r) {
  std::ofstream out(csv_, std::ios::app);
  out << fmt::format("{},{:.17g},{:.9g},{:.9g},{:.9g},{:.6f},{:.1f},{:.4g},{}\n", r.step, r.loss, r.learning_rate,
                     r.gradient_norm, r.parameter_norm, r.seconds, r.tokens_per_second, r.flops_per_second,
                     std::isnan(r.validation_loss) ? "" : fmt::format("{:.17g}", r.validation_loss));
  if (!out.flush()) throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), csv_.string());
  if (!events_) return;
  const std::pair<const char*, double> scalars[] = {{"loss", r.loss},
                                                    {"learning_rate", r.learning_rate},
                                                    {"gradient_norm", r.gradient_norm},
                                                    {"parameter_norm", r.parameter_norm},
                                                    {"tokens_per_second", r.tokens_per_second},
                                                    {"flops_per_second", r.flops_per_second}};
  for (const auto& [tag, value] : scalars) events_->scalar(tag, r.step, static_cast<float>(value));
  if (!std::isnan(r.validation_loss)) events_->scalar("validation_loss", r.step, static_cast<float>(r.validation_loss));
}

}  // namespace trellis::train
