#include "sim/cluster/workload/text_amounts.h"

#include <cmath>

#include "sim/hardware/figures/figure_units.h"
#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr double most_time = 1e6;     // seconds
constexpr double most_amount = 1e24;  // bytes, FLOPs

struct Amount {
  double value = 0;
  std::string_view unit;
};

Amount amount_of(std::string_view word, const char* expected) {
  std::string_view unit = word;
  const auto value = text::take_number<double>(unit);
  if (!value || !std::isfinite(*value) || *value < 0) text::refuse("'{}': expected {}", word, expected);
  return {*value, unit};
}

}  // namespace

double typed_bytes(std::string_view word) {
  const Amount amount = amount_of(word, "bytes, as in 64MB");
  const Unit* unit = find_unit(amount.unit);
  if (unit == nullptr || unit->dimension != Dimension::bytes)
    text::refuse("'{}': expected bytes, as in 64MB or 8KiB", word);
  const double bytes = std::floor(in_own_unit(amount.value, *unit));
  if (bytes > most_amount) text::refuse("'{}' is more than {} B", word, most_amount);
  return bytes;
}

bool add_typed_work(std::string_view word, schedule::GraphTask& part) {
  if (word.empty() || (word[0] != '.' && (word[0] < '0' || word[0] > '9'))) return false;
  constexpr const char* expected = "a time, FLOPs or bytes, as in 120us, 1.2TFLOP or 300MB";
  const Amount amount = amount_of(word, expected);
  if (amount.unit.ends_with("FLOP") && amount.unit.size() <= 5) {
    constexpr std::string_view prefixes = "KMGTPE";
    const std::size_t prefix = amount.unit.size() == 4 ? prefixes.npos : prefixes.find(amount.unit[0]);
    if (amount.unit.size() == 5 && prefix == prefixes.npos) text::refuse("'{}': expected {}", word, expected);
    if (part.flops > 0) text::refuse("'{}': a second number of FLOPs", word);
    part.flops = amount.value * (amount.unit.size() == 4 ? 1 : std::pow(1e3, static_cast<double>(prefix + 1)));
    if (part.flops > most_amount) text::refuse("'{}' is more than {} FLOP", word, most_amount);
    return true;
  }
  const Unit* unit = find_unit(amount.unit);
  if (unit != nullptr && unit->dimension == Dimension::time) {
    const double seconds = in_own_unit(amount.value, *unit);
    if (seconds > most_time) text::refuse("'{}' is more than {} s", word, most_time);
    if (part.time > 0) text::refuse("'{}': a second time", word);
    part.time = static_cast<Time>(std::llround(seconds * 1e12));
  } else if (unit != nullptr && unit->dimension == Dimension::bytes) {
    if (part.bytes > 0) text::refuse("'{}': a second number of bytes", word);
    part.bytes = typed_bytes(word);
  } else {
    text::refuse("'{}': expected {}", word, expected);
  }
  return true;
}

}  // namespace trellis::sim
