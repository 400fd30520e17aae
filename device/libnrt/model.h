// A loaded program, and its runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "device/libnrt/tensor.h"
#include "device/program.h"

namespace trellis::device::nrt {

class Runtime;

class ModelObject {
 public:
  // Refuses bytes that are no container, and a container without a program of this project.
  ModelObject(std::shared_ptr<Device>, int vnc, std::uint32_t id, std::span<const std::byte> neff);

  int vnc() const { return vnc_; }
  std::uint32_t id() const { return id_; }
  const LoadedProgram& program() const { return *program_; }
  Device& device() const { return *device_; }

  // Outputs are fed back into inputs of the same name and size between repetitions.
  struct Run {
    std::shared_ptr<ModelObject> model;
    std::vector<std::shared_ptr<TensorObject>> outputs;
    std::vector<TensorObject::Place> places;                    // of the operands, in their order
    std::vector<std::pair<std::size_t, std::size_t>> fed_back;  // output to input, by operand
    void execute(int times) const;
  };
  static Run bind(const std::shared_ptr<ModelObject>&, const TensorSetObject& inputs, const TensorSetObject& outputs);

 private:
  const std::shared_ptr<Device> device_;
  const int vnc_;
  const std::uint32_t id_;
  std::unique_ptr<LoadedProgram> program_;
};

}  // namespace trellis::device::nrt
