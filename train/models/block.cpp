#include "train/models/block.h"

#include "text/registry.h"

namespace trellis::train {
namespace {

text::Registry<Model>& registry() {
  static text::Registry<Model> all("model");
  return all;
}

}  // namespace

RegisteredModel::RegisteredModel(Model m) { registry().add(std::move(m)); }

const std::map<std::string, Model, std::less<>>& models() { return registry().entries(); }

const Model& model_named(std::string_view name) { return registry().named(name, "model.architecture is"); }

}  // namespace trellis::train
