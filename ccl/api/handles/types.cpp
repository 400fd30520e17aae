#include <memory>

#include "ccl/api/handles/argument_conversion.h"
#include "ccl/api/handles/exception_boundary.h"
#include "kernels/types/convert.h"

using namespace trellis::ccl::api;

size_t trellis_type_size(trellis_type type) {
  return type >= 0 && type < TRELLIS_TYPES ? trellis::kernels::size_of(type_of(type)) : 0;
}

// The names are string literals, so they are zero-terminated.
const char* trellis_type_name(trellis_type type) {
  return type >= 0 && type < TRELLIS_TYPES ? name(type_of(type)).data() : nullptr;
}
const char* trellis_reduction_name(trellis_reduction reduction) {
  return reduction >= 0 && reduction < TRELLIS_REDUCTIONS ? name(reduction_of(reduction)).data() : nullptr;
}
const char* trellis_collective_name(trellis_collective collective) {
  return collective >= 0 && collective < TRELLIS_COLLECTIVES ? name(collective_of(collective)).data() : nullptr;
}

trellis_result trellis_type_load(trellis_type type, const void* element, double* value) {
  return guarded([&] {
    const auto t = type_of(type);
    require(element, "element");
    require(value, "value");
    *value = trellis::kernels::load(t, element);
  });
}
trellis_result trellis_type_store(trellis_type type, void* element, double value) {
  return guarded([&] {
    const auto t = type_of(type);
    require(element, "element");
    trellis::kernels::store(t, element, value);
  });
}

trellis_result trellis_config_from_environment(trellis_config* config) {
  return guarded([&] {
    require(config, "config");
    // On the heap: a library that is loaded late, as by Python, gets little thread-local storage.
    thread_local std::unique_ptr<const trellis::ccl::Config> kept;
    kept = std::make_unique<const trellis::ccl::Config>(trellis::ccl::config_from_environment());
    const trellis::ccl::Config& c = *kept;
    const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    *config = TRELLIS_CONFIG_INIT;
    config->timeout_s = static_cast<double>(c.timeout.count()) / 1000;
    config->algorithm = text(c.algorithm);
    config->selections = text(c.selections);
    config->transport = text(c.transport);
    config->rounding = name(c.rounding).data();
    config->dump = text(c.dump);
    config->seed = c.seed;
    config->single_copy = c.single_copy ? TRELLIS_ON : TRELLIS_OFF;
    config->rounds = c.rounds ? TRELLIS_ON : TRELLIS_OFF;
    config->wire = static_cast<int>(c.wire);
    config->machine = text(c.machine);
  });
}
