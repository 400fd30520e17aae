#include "train/models/model_interface.h"

#include "text/registry.h"
#include "train/config/plugin_code.h"

namespace trellis::train {
namespace {

text::Registry<Model>& registry() {
  static text::Registry<Model> all("model");
  return all;
}

}  // namespace

RegisteredModel::RegisteredModel(Model m) { register_from(__builtin_return_address(0), registry(), std::move(m)); }

const std::map<std::string, Model, std::less<>>& models() { return registry().entries(); }

const Model& model_named(std::string_view name) { return registry().named(name, "model.architecture is"); }

}  // namespace trellis::train
