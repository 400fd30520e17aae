#include "device/libnrt/model.h"

#include <algorithm>

namespace trellis::device::nrt {

ModelObject::ModelObject(std::shared_ptr<Device> device, int vnc, std::uint32_t id, std::span<const std::byte> neff)
    : device_(std::move(device)), vnc_(vnc), id_(id), program_(device_->load(neff)) {}

ModelObject::Run ModelObject::bind(const std::shared_ptr<ModelObject>& model, const TensorSetObject& inputs,
                                   const TensorSetObject& outputs) {
  Run run{.model = model, .outputs = {}, .places = {}, .fed_back = {}};
  const auto in = inputs.all(), out = outputs.all();
  const auto& operands = model->program_->operands();
  for (const ProgramOperand& o : operands) {
    const auto& set = o.output ? out : in;
    const auto found = set.find(o.name);
    if (found == set.end())
      refuse(Status::invalid, "the {} set has no tensor '{}', which {} {}", o.output ? "output" : "input", o.name,
             model->program_->name(), o.output ? "writes" : "reads");
    TensorObject::Place p = found->second->place();
    if (p.bytes != o.bytes)
      refuse(Status::invalid, "tensor '{}' has {} bytes; {} wants {}", o.name, p.bytes, model->program_->name(),
             o.bytes);
    if (p.storage->vnc() >= 0 && p.storage->vnc() != model->vnc_)
      refuse(Status::invalid, "tensor '{}' is on core {}, the model on core {}", o.name, p.storage->vnc(), model->vnc_);
    run.places.push_back(std::move(p));
    if (o.output) run.outputs.push_back(found->second);
  }
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t j = 0; j < operands.size(); ++j)
      if (operands[i].output && !operands[j].output && operands[i].name == operands[j].name &&
          operands[i].bytes == operands[j].bytes)
        run.fed_back.emplace_back(i, j);
  return run;
}

void ModelObject::Run::execute(int times) const {
  std::vector<Storage*> storages;
  std::vector<Binding> bindings;
  const auto& operands = model->program_->operands();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    storages.push_back(places[i].storage.get());
    bindings.push_back({operands[i].name, places[i].data(), places[i].bytes});
  }
  for (int t = 0; t < times; ++t) {
    {
      const StorageLock lock(storages);
      for (const auto& [from, to] : fed_back)
        if (t > 0) std::copy_n(places[from].data(), places[from].bytes, places[to].data());
      model->program_->run(bindings, nullptr);
    }
    for (const auto& tensor : outputs) tensor->completed();
  }
}

}  // namespace trellis::device::nrt
