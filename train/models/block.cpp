#include "train/models/block.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::train {
namespace {

std::vector<Model>& registry() {
  static std::vector<Model> all;
  return all;
}

}  // namespace

RegisteredModel::RegisteredModel(Model m) { registry().push_back(std::move(m)); }

const std::vector<Model>& models() { return registry(); }

const Model& model_named(std::string_view name) {
  std::vector<std::string> known;
  for (const Model& m : models()) {
    if (m.name == name) return m;
    known.push_back(m.name);
  }
  std::ranges::sort(known);
  throw std::invalid_argument(
      fmt::format("model.architecture is '{}': expected one of {}", name, fmt::join(known, ", ")));
}

}  // namespace trellis::train
