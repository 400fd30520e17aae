#include "device/nrt/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "device/device.h"
#include "device/environment_variable.h"

namespace trellis::device::nrt {

const std::vector<NrtFunctionInfo>& functions() {
#define TRELLIS_NRT_NAME(since, result, name, parameters) {#name, since},
  static const std::vector<NrtFunctionInfo> all = {TRELLIS_NRT_FUNCTIONS(TRELLIS_NRT_NAME)};
#undef TRELLIS_NRT_NAME
  return all;
}

std::string library_file() {
  const std::string value = value_of_variable("TRELLIS_LIBNRT");
  return value.empty() ? "libnrt.so.1" : value;
}

NrtLibrary::NrtLibrary(const std::string& file) : file_(file) {
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr)
    throw Unsupported(fmt::format(
        "neuron: the Neuron runtime's library cannot be opened ({}); it comes with the package "
        "aws-neuronx-runtime-lib, "
        "and TRELLIS_LIBNRT names another file: the stand-in is lib/trellis/libnrt.so.1 where this is installed",
        dlerror()));  // NOLINT(concurrency-mt-unsafe): of this thread, in glibc
#define TRELLIS_NRT_FIND(since, result, name, parameters) name = reinterpret_cast<result(*) parameters>(symbol(#name));
  TRELLIS_NRT_FUNCTIONS(TRELLIS_NRT_FIND)
#undef TRELLIS_NRT_FIND
}

NrtLibrary::~NrtLibrary() { dlclose(handle_); }

void* NrtLibrary::symbol(std::string_view name) const { return dlsym(handle_, std::string(name).c_str()); }

std::string_view NrtLibrary::lacks(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (symbol(name) == nullptr) return name;
  return {};
}

std::string NrtLibrary::missing_text(std::string_view name) const {
  const auto found = std::ranges::find(functions(), name, &NrtFunctionInfo::name);
  return fmt::format("{} has no {}, which SDK {} has", file_, name,
                     found == functions().end() ? "of another kind" : found->since);
}

void NrtLibrary::refuse(std::string_view name) const { throw Unsupported("neuron: " + missing_text(name)); }

}  // namespace trellis::device::nrt
