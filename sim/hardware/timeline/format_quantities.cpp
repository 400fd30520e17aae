#include "sim/hardware/timeline/format_quantities.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>
#include <string_view>

namespace trellis::sim {
namespace {

struct Step {
  double size;
  std::string_view unit;
};

constexpr std::array<Step, 5> times = {{{1, "ps"}, {1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}}};
constexpr std::array<Step, 5> memories = {
    {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}, {1099511627776, "TiB"}}};
constexpr std::array<Step, 5> rates = {{{1, "B/s"}, {1e3, "KB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}}};
constexpr std::array<Step, 7> counts = {
    {{1, "FLOP"}, {1e3, "KFLOP"}, {1e6, "MFLOP"}, {1e9, "GFLOP"}, {1e12, "TFLOP"}, {1e15, "PFLOP"}, {1e18, "EFLOP"}}};

// Three digits: 1.23, 12.3, 123; and 1234 in the largest unit.
std::string scaled(double value, std::span<const Step> steps) {
  const Step* step = &steps.front();
  // 999.6 would be written as 1000, which is 1 of the next unit.
  for (const Step& next : steps)
    if (std::abs(value) >= next.size * 0.9995) step = &next;
  const double number = value / step->size, size = std::abs(number);
  if (step == &steps.front() || size >= 99.95) return fmt::format("{:.0f} {}", number, step->unit);
  return fmt::format("{:.{}f} {}", number, size >= 9.995 ? 1 : 2, step->unit);
}

}  // namespace

std::string time_words(Time t) { return scaled(static_cast<double>(t), times); }
std::string bytes_words(double bytes) { return scaled(bytes, memories); }
std::string rate_words(double rate) { return scaled(rate, rates); }
std::string flops_words(double flops) { return scaled(flops, counts); }
std::string percent_words(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string share_words(Time part, Time of) {
  return percent_words(of == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of));
}

}  // namespace trellis::sim
