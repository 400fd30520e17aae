#include "ccl/api/handles/argument_conversion.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ccl/api/handles/exception_boundary.h"
#include "ccl/plan/selection_table.h"
#include "schedule/collective_traits.h"
#include "text/refuse.h"

namespace trellis::ccl::api {
namespace {

template <class Enum>
constexpr bool is(int number, Enum value) {
  return number == static_cast<int>(value);
}

// The C API's numbers are equal to the enums' today. If an enum is renumbered, replace the casts by a table.
using kernels::DType;
static_assert(is(TRELLIS_F64, DType::f64) && is(TRELLIS_F32, DType::f32) && is(TRELLIS_TF32, DType::tf32) &&
              is(TRELLIS_F16, DType::f16) && is(TRELLIS_BF16, DType::bf16) && is(TRELLIS_F8E3M4, DType::f8e3m4) &&
              is(TRELLIS_F8E4M3, DType::f8e4m3) && is(TRELLIS_F8E4M3FN, DType::f8e4m3fn) &&
              is(TRELLIS_F8E5M2, DType::f8e5m2) && is(TRELLIS_I8, DType::i8) && is(TRELLIS_U8, DType::u8) &&
              is(TRELLIS_I16, DType::i16) && is(TRELLIS_U16, DType::u16) && is(TRELLIS_I32, DType::i32) &&
              is(TRELLIS_U32, DType::u32) && is(TRELLIS_I64, DType::i64) && is(TRELLIS_U64, DType::u64) &&
              TRELLIS_TYPES == kernels::dtype_count);
using kernels::Reduction;
static_assert(is(TRELLIS_SUM, Reduction::sum) && is(TRELLIS_PROD, Reduction::prod) && is(TRELLIS_MIN, Reduction::min) &&
              is(TRELLIS_MAX, Reduction::max) && is(TRELLIS_AVG, Reduction::avg) &&
              is(TRELLIS_SCALED_SUM, Reduction::scaled_sum) && TRELLIS_REDUCTIONS == kernels::reduction_count);
static_assert(is(TRELLIS_ALL_REDUCE, Collective::all_reduce) &&
              is(TRELLIS_REDUCE_SCATTER, Collective::reduce_scatter) &&
              is(TRELLIS_ALL_GATHER, Collective::all_gather) && is(TRELLIS_BROADCAST, Collective::broadcast) &&
              is(TRELLIS_REDUCE, Collective::reduce) && is(TRELLIS_GATHER, Collective::gather) &&
              is(TRELLIS_SCATTER, Collective::scatter) && is(TRELLIS_ALL_TO_ALL, Collective::all_to_all) &&
              is(TRELLIS_ALL_TO_ALL_V, Collective::all_to_all_v) &&
              is(TRELLIS_ALL_GATHER_V, Collective::all_gather_v) &&
              is(TRELLIS_REDUCE_SCATTER_V, Collective::reduce_scatter_v) && is(TRELLIS_PERMUTE, Collective::permute) &&
              is(TRELLIS_SEND_RECV, Collective::send_recv) && is(TRELLIS_BARRIER, Collective::barrier));

template <class Enum>
Enum numbered(int number, int count, const char* kind) {
  if (number < 0 || number >= count) text::refuse("{} {}: expected 0 to {}", kind, number, count - 1);
  return static_cast<Enum>(number);
}

// Reads a struct whose size may differ from ours. Fields that the caller's lacks are as in `ours`. Fields that ours
// lacks must be zero, since we could not do what they ask for.
template <class Struct>
Struct grown(const Struct* theirs, std::size_t least, Struct ours, const char* name) {
  if (theirs->size < least || theirs->size > 4096)
    text::refuse("{}.size is {}: expected {}, as its initializer has it", name, theirs->size, sizeof(Struct));
  const auto* bytes = reinterpret_cast<const unsigned char*>(theirs);
  for (std::size_t i = sizeof(Struct); i < theirs->size; ++i)
    if (bytes[i] != 0) text::refuse("{}: byte {} is set, and this library does not know it", name, i);
  std::memcpy(&ours, theirs, std::min(theirs->size, sizeof(Struct)));
  return ours;
}

trellis_config checked(const trellis_config* given) {
  const trellis_config c = grown(given, sizeof(trellis_config), TRELLIS_CONFIG_INIT, "config");
  if (c.version / 10000 != TRELLIS_VERSION / 10000)
    text::refuse("config.version is {}: expected {}, as TRELLIS_CONFIG_INIT has it", c.version, TRELLIS_VERSION);
  if (c.nonblocking != 0 && c.nonblocking != 1)
    text::refuse("config.nonblocking is {}: expected 0 or 1", c.nonblocking);
  if (c.single_copy < 0 || c.single_copy > TRELLIS_OFF)
    text::refuse("config.single_copy is {}: expected 0, TRELLIS_ON or TRELLIS_OFF", c.single_copy);
  if (c.rounds < 0 || c.rounds > TRELLIS_OFF)
    text::refuse("config.rounds is {}: expected 0, TRELLIS_ON or TRELLIS_OFF", c.rounds);
  if (c.timeout_s != 0 && (!(c.timeout_s >= 1e-3) || c.timeout_s > 1e7))
    text::refuse("config.timeout_s is {}: expected 0, or seconds from 0.001 to 10000000", c.timeout_s);
  if (c.wire != 0 && c.wire != TRELLIS_F32 && c.wire != TRELLIS_BF16)
    text::refuse("config.wire is {}: expected 0, TRELLIS_F32 or TRELLIS_BF16", c.wire);
  return c;
}

std::vector<std::size_t> counts_of(const std::size_t* counts, Rank ranks, const char* name) {
  require(counts, name);
  return {counts, counts + ranks};
}

}  // namespace

kernels::DType type_of(trellis_type t) { return numbered<kernels::DType>(t, TRELLIS_TYPES, "type"); }
kernels::Reduction reduction_of(trellis_reduction r) {
  return numbered<kernels::Reduction>(r, TRELLIS_REDUCTIONS, "reduction");
}
ReduceOp plain_reduction_of(trellis_reduction r) {
  if (r == TRELLIS_SCALED_SUM)
    throw std::invalid_argument("reduction TRELLIS_SCALED_SUM needs a factor: call trellis_run");
  return {reduction_of(r)};
}
Collective collective_of(trellis_collective c) { return numbered<Collective>(c, TRELLIS_COLLECTIVES, "collective"); }

CommSettings settings_of(const trellis_config* given) {
  CommSettings s{config_from_environment()};
  if (given == nullptr) return s;
  const trellis_config c = checked(given);
  s.nonblocking = c.nonblocking == 1;
  if (c.timeout_s != 0) s.config.timeout = std::chrono::milliseconds(std::llround(c.timeout_s * 1000));
  if (c.algorithm != nullptr) s.config.algorithm = c.algorithm;
  if (c.selections != nullptr) s.config.selections = c.selections;
  if (c.transport != nullptr) s.config.transport = c.transport;
  if (c.rounding != nullptr) s.config.rounding = kernels::rounding_named(c.rounding);
  if (c.dump != nullptr) s.config.dump = c.dump;
  if (c.seed != 0) s.config.seed = c.seed;
  if (c.single_copy != 0) s.config.single_copy = c.single_copy == TRELLIS_ON;
  if (c.wire != 0) s.config.wire = type_of(c.wire);
  if (c.rounds != 0) s.config.rounds = c.rounds == TRELLIS_ON;
  if (c.machine != nullptr) expect_machine(s.config.machine = c.machine);
  return s;
}

bool nonblocking_child(const trellis_config* given, bool parent) {
  if (given == nullptr) return parent;
  const trellis_config c = checked(given);
  if (c.timeout_s != 0 || c.algorithm != nullptr || c.selections != nullptr || c.transport != nullptr ||
      c.rounding != nullptr || c.dump != nullptr || c.seed != 0 || c.single_copy != 0 || c.wire != 0 ||
      c.machine != nullptr || c.rounds != 0)
    throw std::invalid_argument("config: a child is configured like its parent, but for `nonblocking`");
  return c.nonblocking == 1;
}

Call call_of(const trellis_call* given, Rank ranks) {
  require(given, "call");
  const trellis_call c = grown(given, sizeof(trellis_call), TRELLIS_CALL_INIT, "call");
  Call call{.operation = {.collective = collective_of(c.collective), .root = c.root, .peer = c.peer},
            .input = c.in,
            .output = c.out,
            .count = c.count,
            .type = type_of(c.type),
            .op = {reduction_of(c.reduction), c.factor}};
  const bool by_rank = call.operation.collective == Collective::all_gather_v ||
                       call.operation.collective == Collective::reduce_scatter_v;
  const bool both_ways = schedule::counts_by_pair(call.operation.collective);
  if (by_rank || both_ways) call.counts = counts_of(c.counts, ranks, "call.counts");
  if (both_ways) call.arriving_counts = counts_of(c.arriving_counts, ranks, "call.arriving_counts");
  if (call.operation.collective == Collective::permute) {
    if (c.pair_count < 0) text::refuse("call.pair_count is {}", c.pair_count);
    if (c.pair_count > 0) require(c.pairs, "call.pairs");
    for (int i = 0; i < c.pair_count; ++i) call.operation.pairs.push_back({c.pairs[i].source, c.pairs[i].target});
  }
  return call;
}

}  // namespace trellis::ccl::api
