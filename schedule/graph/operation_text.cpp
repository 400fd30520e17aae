#include "schedule/graph/operation_text.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

constexpr std::uint64_t most_extent = std::uint64_t{1} << 48;
constexpr double most_passes = 1e6;

constexpr std::pair<const char*, std::uint64_t OperationShape::*> extents[] = {{"rows", &OperationShape::rows},
                                                                               {"columns", &OperationShape::columns},
                                                                               {"inner", &OperationShape::inner},
                                                                               {"batch", &OperationShape::batch},
                                                                               {"shared", &OperationShape::shared}};
constexpr std::pair<const char*, std::string OperationShape::*> types[] = {{"type", &OperationShape::type},
                                                                           {"result", &OperationShape::result}};
constexpr std::pair<const char*, double OperationShape::*> passes[] = {{"inputs", &OperationShape::inputs},
                                                                       {"outputs", &OperationShape::outputs},
                                                                       {"vector", &OperationShape::vector},
                                                                       {"scalar", &OperationShape::scalar}};
constexpr std::pair<const char*, bool OperationShape::*> flags[] = {{"fused", &OperationShape::fused},
                                                                    {"accumulate", &OperationShape::accumulate},
                                                                    {"causal", &OperationShape::causal},
                                                                    {"flash", &OperationShape::flash},
                                                                    {"dropout", &OperationShape::dropout}};

bool take(OperationShape& shape, std::string_view key, std::string_view value) {
  for (const auto& [name, field] : extents)
    if (key == name) {
      const auto number = text::number<std::uint64_t>(value, 1, most_extent);
      if (!number) text::refuse("{}={}: expected 1 to {}", key, value, most_extent);
      return shape.*field = *number, true;
    }
  for (const auto& [name, field] : types)
    if (key == name && !value.empty()) return shape.*field = value, true;
  for (const auto& [name, field] : passes)
    if (key == name) {
      const auto number = text::number<double>(value, 0, most_passes);
      if (!number) text::refuse("{}={}: expected 0 to {}", key, value, most_passes);
      return shape.*field = *number, true;
    }
  return false;
}

}  // namespace

std::string text_of(const OperationShape& shape) {
  const OperationShape usual;
  std::string text = shape.kind;
  for (const auto& [name, field] : extents)
    if (shape.*field != usual.*field) text += fmt::format(" {}={}", name, shape.*field);
  for (const auto& [name, field] : types)
    if (shape.*field != usual.*field) text += fmt::format(" {}={}", name, shape.*field);
  for (const auto& [name, field] : passes)
    if (shape.*field >= 0) text += fmt::format(" {}={}", name, shape.*field);
  for (const auto& [name, field] : flags)
    if (shape.*field) text += fmt::format(" {}", name);
  return text;
}

OperationShape read_operation(std::span<const std::string_view> words) {
  if (words.empty()) throw std::invalid_argument("expected an operation's kind, as in product rows=128");
  OperationShape shape{.kind = std::string(words[0])};
  for (const std::string_view word : words.subspan(1)) {
    bool known = false;
    for (const auto& [name, field] : flags)
      if (word == name) shape.*field = known = true;
    const std::size_t equals = word.find('=');
    if (!known && equals != word.npos) known = take(shape, word.substr(0, equals), word.substr(equals + 1));
    if (!known)
      text::refuse(
          "'{}': expected rows=, columns=, inner=, batch=, shared=, type=, result=, inputs=, outputs=, "
          "vector=, scalar=, fused, accumulate, causal, flash or dropout",
          word);
  }
  return shape;
}

}  // namespace trellis::schedule
