// The Neuron runtime in this process: opened and started with the first device, closed with the last.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "device/capabilities.h"
#include "device/device.h"
#include "device/native_collective.h"
#include "device/nrt/library.h"
#include "device/topology.h"

namespace trellis::device {

const std::error_category& nrt_category();

class NeuronRuntime {
 public:
  static std::shared_ptr<NeuronRuntime> of_process();  // throws Unsupported, system_error
  static std::string missing();                        // why there is none; empty: there is

  NeuronRuntime();
  ~NeuronRuntime();
  NeuronRuntime(const NeuronRuntime&) = delete;
  NeuronRuntime& operator=(const NeuronRuntime&) = delete;

  const nrt::NrtLibrary& library() const { return library_; }
  // Throws unless the status is success: invalid_argument for a wrong argument or handle, Unsupported for a NEFF that
  // can't run here, else system_error. A device itself turns lack of memory into OutOfMemory.
  void check(nrt::Status, std::string_view function) const;
  // Calls a function that must exist: check(need(f, "f")(...), "f") in one.
  template <class Function, class... Arguments>
  void call(Function function, std::string_view name, Arguments... arguments) const {
    check(library_.need(function, name)(arguments...), name);
  }

  // Joins a world, which all devices of a process share. Returns why the process cannot be in this one; empty: it is.
  std::string enter(std::uint64_t identity);
  void leave();  // called by a device that has entered, but could not join the others there
  // The runtime's number for the world. It also depends on NEURON_RT_ROOT_COMM_ID; without that variable, each process
  // has a world of its own.
  static std::uint64_t world_of(std::uint64_t identity);
  NativeTurn take_native_turn(int core);  // null: another has it
  // Keeps alive what a collective in flight still uses, its turn included, until the collective or the runtime ends.
  void keep(std::shared_ptr<const void>, nrt::Sequence collective);

  Capabilities capabilities() const;
  std::string why_not(Capability) const;
  Topology topology(int core) const;

 private:
  std::string_view lacking(Capability) const;  // the first function for it that the library lacks
  void forget_ended();                         // drops what keep() holds for collectives that have ended
  const nrt::NrtLibrary library_;
  const char* (*last_error_)() = nullptr;  // null unless the library is this project's own libnrt
  std::mutex mutex_;
  std::uint64_t world_ = 0;                         // 0: none yet
  int entered_ = 0;                                 // devices that are in it
  std::map<int, std::weak_ptr<const void>> turns_;  // by core
  std::vector<std::pair<nrt::Sequence, std::shared_ptr<const void>>> kept_;
};

}  // namespace trellis::device
