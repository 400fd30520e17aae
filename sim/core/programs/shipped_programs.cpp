#include "sim/core/programs/shipped_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "kernels/types/convert.h"
#include "kernels/types/fnv1a.h"
#include "kernels/types/random.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/registry.h"

namespace trellis::sim::core {
namespace {

text::Registry<ShippedProgram>& registry() {
  static text::Registry<ShippedProgram> all("program");
  return all;
}

}  // namespace

Arguments::Arguments(const std::vector<ProgramParameter>& parameters) : parameters_(parameters) {}

const ProgramParameter& Arguments::at(std::string_view name) const {
  const auto found = std::ranges::find(parameters_, name, &ProgramParameter::name);
  if (found != parameters_.end()) return *found;
  std::vector<std::string_view> known;
  for (const ProgramParameter& p : parameters_) known.push_back(p.name);
  text::refuse("no parameter '{}'; expected one of {}", name, fmt::join(known, ", "));
}

void Arguments::set(std::string_view name, std::string_view text) {
  ProgramParameter& p = parameters_[static_cast<std::size_t>(&at(name) - parameters_.data())];
  if (!p.words.empty()) {
    const auto found = std::ranges::find(p.words, text);
    if (found == p.words.end()) text::refuse("{}={}; expected one of {}", name, text, fmt::join(p.words, ", "));
    p.value = static_cast<double>(found - p.words.begin());
    return;
  }
  const auto value = text::finite_number(text);
  if (!value) text::refuse("{}={}; expected a number", name, text);
  p.value = *value;
}

std::int64_t Arguments::count(std::string_view name) const {
  const double value = at(name).value;
  if (value < 1 || value != std::floor(value) || value > most_in_dim)
    text::refuse("{}={:.17g}; expected a whole number from 1 to {}", name, value, most_in_dim);
  return static_cast<std::int64_t>(value);
}

double Arguments::number(std::string_view name) const { return at(name).value; }

const std::string& Arguments::word(std::string_view name) const {
  const ProgramParameter& p = at(name);
  return p.words.at(static_cast<std::size_t>(p.value));
}

DType Arguments::type(std::string_view name) const { return kernels::dtype_named(word(name)); }

RegisteredProgram::RegisteredProgram(ShippedProgram program) { registry().add(std::move(program)); }

const std::map<std::string, ShippedProgram, std::less<>>& shipped() { return registry().entries(); }

const ShippedProgram& shipped_named(std::string_view name) { return registry().named(name, "no program"); }

void fill_normal(CoreMemory& memory, std::string_view buffer, DType type, std::uint64_t seed, double deviation) {
  const std::span<std::byte> bytes = memory.hbm(buffer);
  const std::size_t size = kernels::size_of(type), n = bytes.size() / size;
  const kernels::RandomKey key = kernels::random_key({.seed = seed, .tensor = kernels::fnv1a(buffer)});
  for (std::size_t i = 0; i < n; ++i) {
    // Box-Muller: one of the pair.
    const double u = (kernels::random32(key, 2 * i) + 1.0) / 4294967297.0,
                 v = kernels::random32(key, 2 * i + 1) / 4294967296.0;
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    kernels::store(type, bytes.data() + i * size, normal * deviation);
  }
}

Comparison compare_within(std::string_view what, DType type, const void* got, const void* truth, std::size_t n,
                          double absolute, double relative) {
  Comparison c{.what = std::string(what), .elements = n};
  const std::size_t size = kernels::size_of(type);
  for (std::size_t i = 0; i < n; ++i) {
    const double a = kernels::load(type, static_cast<const std::byte*>(got) + i * size);
    const double b = kernels::load(type, static_cast<const std::byte*>(truth) + i * size);
    const double bound = absolute + relative * std::abs(b), distance = std::abs(a - b);
    if (!(distance <= bound)) ++c.wrong;
    if (distance > c.worst || std::isnan(distance)) {
      c.worst = distance;
      c.bound = bound;
    }
  }
  if (c.bound == 0) c.bound = absolute;
  return c;
}

Comparison compare_bits(std::string_view what, DType type, const void* got, const void* truth, std::size_t n) {
  Comparison c{.what = std::string(what), .elements = n};
  const std::size_t size = kernels::size_of(type);
  for (std::size_t i = 0; i < n; ++i) {
    const std::byte *a = static_cast<const std::byte*>(got) + i * size,
                    *b = static_cast<const std::byte*>(truth) + i * size;
    if (std::memcmp(a, b, size) == 0) continue;
    ++c.wrong;
    c.worst = std::max(c.worst, std::abs(kernels::load(type, a) - kernels::load(type, b)));
  }
  return c;
}

}  // namespace trellis::sim::core
