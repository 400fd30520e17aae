#include "ccl/api/nccl/parameters.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "ccl/api/nccl/nccl_error.h"
#include "text/number_parsing.h"

using namespace trellis::nccl;

// What a handle points to; lives as long as the library.
struct ncclParamHandle {
  const char* key;
  std::string (*text)(const trellis_config&);
};

namespace {

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

constexpr ncclParamHandle parameters[] = {
    {"TRELLIS_TIMEOUT", [](const trellis_config& c) { return fmt::format("{}", c.timeout_s); }},
    {"TRELLIS_ALGORITHM", [](const trellis_config& c) { return text_of(c.algorithm); }},
    {"TRELLIS_SELECTIONS", [](const trellis_config& c) { return text_of(c.selections); }},
    {"TRELLIS_MACHINE", [](const trellis_config& c) { return text_of(c.machine); }},
    {"TRELLIS_TRANSPORT", [](const trellis_config& c) { return text_of(c.transport); }},
    {"TRELLIS_ROUNDING", [](const trellis_config& c) { return text_of(c.rounding); }},
    {"TRELLIS_SEED", [](const trellis_config& c) { return fmt::format("{}", c.seed); }},
    {"TRELLIS_WIRE", [](const trellis_config& c) { return text_of(trellis_type_name(c.wire)); }},
    {"TRELLIS_DUMP", [](const trellis_config& c) { return text_of(c.dump); }},
    {"TRELLIS_SINGLE_COPY", [](const trellis_config& c) { return fmt::format("{:d}", c.single_copy == TRELLIS_ON); }},
    {"TRELLIS_ROUNDS", [](const trellis_config& c) { return fmt::format("{:d}", c.rounds == TRELLIS_ON); }},
};

const ncclParamHandle& named(const char* key) {
  require(key, "key");
  const auto* found = std::ranges::find_if(parameters, [&](const auto& p) { return std::strcmp(p.key, key) == 0; });
  if (found == std::end(parameters)) refuse_argument("key '{}': known are those of ncclParamGetAllParameterKeys", key);
  return *found;
}

const ncclParamHandle& handled(ncclParamHandle_t h) {
  const auto* found = std::ranges::find_if(parameters, [&](const auto& p) { return &p == h; });
  if (found == std::end(parameters)) refuse_argument("{} is no handle of ncclParamBind", static_cast<void*>(h));
  return *found;
}

std::string value_of(const ncclParamHandle& p) {
  trellis_config config;
  checked(trellis_config_from_environment(&config));
  return p.text(config);
}

template <class Number>
ncclResult_t number_of(ncclParamHandle_t h, Number* out) {
  return guarded([&] {
    const ncclParamHandle& p = handled(h);
    require(out, "out");
    const std::string text = value_of(p);
    const std::optional<Number> number = trellis::text::number<Number>(text);
    if (!number)
      refuse_argument("{}={}: no integer of {} {} bits", p.key, text, std::is_signed_v<Number> ? "signed" : "unsigned",
                      8 * sizeof(Number));
    *out = *number;
  });
}

}  // namespace

ncclResult_t ncclParamBind(ncclParamHandle_t* out, const char* key) {
  return guarded([&] {
    require(out, "out");
    *out = const_cast<ncclParamHandle_t>(&named(key));  // as the interface requires; nothing here writes through it
  });
}
TRELLIS_NCCL_TWIN(ncclParamBind);

ncclResult_t ncclParamGetI8(ncclParamHandle_t h, int8_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetI8);
ncclResult_t ncclParamGetI16(ncclParamHandle_t h, int16_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetI16);
ncclResult_t ncclParamGetI32(ncclParamHandle_t h, int32_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetI32);
ncclResult_t ncclParamGetI64(ncclParamHandle_t h, int64_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetI64);
ncclResult_t ncclParamGetU8(ncclParamHandle_t h, uint8_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetU8);
ncclResult_t ncclParamGetU16(ncclParamHandle_t h, uint16_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetU16);
ncclResult_t ncclParamGetU32(ncclParamHandle_t h, uint32_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetU32);
ncclResult_t ncclParamGetU64(ncclParamHandle_t h, uint64_t* out) { return number_of(h, out); }
TRELLIS_NCCL_TWIN(ncclParamGetU64);

ncclResult_t ncclParamGetStr(ncclParamHandle_t h, const char** out) {
  return guarded([&] {
    const ncclParamHandle& p = handled(h);
    require(out, "out");
    thread_local std::string kept;
    kept = value_of(p);
    *out = kept.c_str();
  });
}
TRELLIS_NCCL_TWIN(ncclParamGetStr);

ncclResult_t ncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  return guarded([&] {
    const ncclParamHandle& p = handled(h);
    require(out, "out");
    require(len, "len");
    const std::string text = value_of(p);
    *len = static_cast<int>(text.size());
    if (*len > maxLen) refuse_argument("maxLen {}: {} has {} bytes", maxLen, p.key, *len);
    std::memcpy(out, text.data(), text.size());
  });
}
TRELLIS_NCCL_TWIN(ncclParamGet);

ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  return guarded([&] {
    const ncclParamHandle& p = named(key);
    require(value, "value");
    require(valueLen, "valueLen");
    thread_local std::string kept;
    kept = value_of(p);
    *value = kept.c_str();
    *valueLen = static_cast<int>(kept.size());
  });
}
TRELLIS_NCCL_TWIN(ncclParamGetParameter);

ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  return guarded([&] {
    require(table, "table");
    require(tableLen, "tableLen");
    thread_local const char* keys[std::size(parameters)];
    std::ranges::transform(parameters, keys, [](const auto& p) { return p.key; });
    *table = keys;
    *tableLen = static_cast<int>(std::size(keys));
  });
}
TRELLIS_NCCL_TWIN(ncclParamGetAllParameterKeys);

// Prints because the program asks for it.
void ncclParamDumpAll(void) {
  guarded([] {
    for (const ncclParamHandle& p : parameters) std::fprintf(stderr, "%s=%s\n", p.key, value_of(p).c_str());
  });
}
TRELLIS_NCCL_TWIN(ncclParamDumpAll);
