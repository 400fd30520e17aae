#include "ccl/api/nccl/nccl_argument_checks.h"

#include "ccl/api/nccl/nccl_error.h"

namespace trellis::nccl {
namespace {

constexpr std::size_t most_bytes = SIZE_MAX / 2;  // same limit as in the layers below

struct Blocks {
  std::size_t in = 1, out = 1;  // in units of `count` elements, in this rank's buffers; 0: no buffer
};

Blocks blocks_of(const trellis_call& call, const RankAndSize& place) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  const bool root = call.root == place.rank;
  switch (call.collective) {
    case TRELLIS_BROADCAST:
      return {.in = root ? 1U : 0U};
    case TRELLIS_REDUCE:
      return {.out = root ? 1U : 0U};
    case TRELLIS_REDUCE_SCATTER:
      return {.in = ranks};
    case TRELLIS_ALL_GATHER:
      return {.out = ranks};
    case TRELLIS_GATHER:
      return {.out = root ? ranks : 0};
    case TRELLIS_SCATTER:
      return {.in = root ? ranks : 0};
    case TRELLIS_ALL_TO_ALL:
      return {.in = ranks, .out = ranks};
    default:
      return {};
  }
}

bool by_block(trellis_collective c) { return c != TRELLIS_ALL_REDUCE && c != TRELLIS_BROADCAST && c != TRELLIS_REDUCE; }
bool rooted(trellis_collective c) {
  return c == TRELLIS_BROADCAST || c == TRELLIS_REDUCE || c == TRELLIS_GATHER || c == TRELLIS_SCATTER;
}

// Size of one block; checks that all of them fit too.
std::size_t bytes_of(const ParameterNames& f, std::size_t count, trellis_type type, std::size_t blocks) {
  const std::size_t size = trellis_type_size(type);
  std::size_t all = 0;
  if (!__builtin_mul_overflow(count, size * blocks, &all) && all <= most_bytes) return count * size;
  const std::string each = blocks == 1 ? "" : fmt::format(" for each of {} ranks", blocks);
  refuse_argument("{}: {} {}: this many elements of {} bytes{} do not fit in memory", f.name, f.count, count, size,
                  each);
}

void check_buffer(const ParameterNames& f, const char* name, const void* data, std::size_t bytes) {
  if (bytes == 0) return;
  if (data == nullptr) refuse_argument("{}: {} is NULL", f.name, name);
  if (reinterpret_cast<std::uintptr_t>(data) > UINTPTR_MAX - bytes)
    refuse_argument("{}: {} {}: {} bytes from there on go past the last address", f.name, name, data, bytes);
}

// In place means that the block that both buffers have in common is at the same address in both.
void check_overlap(const ParameterNames& f, const trellis_call& call, const RankAndSize& place, std::size_t in_bytes,
                   std::size_t out_bytes, std::size_t block) {
  const auto in = reinterpret_cast<std::uintptr_t>(call.in), out = reinterpret_cast<std::uintptr_t>(call.out);
  if (in_bytes == 0 || out_bytes == 0 || in >= out + out_bytes || out >= in + in_bytes) return;
  const std::uintptr_t own = block * static_cast<std::size_t>(place.rank);
  if (in + (in_bytes > out_bytes ? own : 0) == out + (out_bytes > in_bytes ? own : 0)) return;
  refuse_argument("{}: {} bytes from {} {} overlap {} from {} {}, and not in place", f.name, in_bytes, f.in, call.in,
                  out_bytes, f.out, static_cast<const void*>(call.out));
}

}  // namespace

void check(const ParameterNames& f, const trellis_call& call, const NcclComm& nccl_comm) {
  const RankAndSize place = nccl_comm.place();
  if (rooted(call.collective) && (call.root < 0 || call.root >= place.ranks))
    refuse_argument("{}: root {}: expected 0 to {}", f.name, call.root, place.ranks - 1);
  const auto most_blocks = static_cast<std::size_t>(by_block(call.collective) ? place.ranks : 1);
  const std::size_t block = bytes_of(f, call.count, call.type, most_blocks);
  const Blocks blocks = blocks_of(call, place);
  check_buffer(f, f.in, call.in, blocks.in * block);
  check_buffer(f, f.out, call.out, blocks.out * block);
  check_overlap(f, call, place, blocks.in * block, blocks.out * block, block);
}

void check(const ParameterNames& f, const char* buffer, const void* data, std::size_t count, trellis_type type,
           int peer, const NcclComm& nccl_comm) {
  check_peer(f.name, peer, nccl_comm);
  check_buffer(f, buffer, data, bytes_of(f, count, type, 1));
}

void check_peer(const char* function, int peer, const NcclComm& nccl_comm) {
  const int ranks = nccl_comm.place().ranks;
  if (peer < 0 || peer >= ranks) refuse_argument("{}: peer {}: expected 0 to {}", function, peer, ranks - 1);
}

void check_rank(const char* name, int rank, const char* ranks_name, int ranks) {
  if (ranks < 1) refuse_argument("{} {}: expected at least 1", ranks_name, ranks);
  if (rank < 0 || rank >= ranks)
    refuse_argument("{} {} of {} {}: expected 0 to {}", name, rank, ranks_name, ranks, ranks - 1);
}

void check_region(const void* buff, std::size_t size) {
  require(buff, "buff");
  if (size == 0) refuse_argument("size 0: expected at least 1");
  if (reinterpret_cast<std::uintptr_t>(buff) > UINTPTR_MAX - size)
    refuse_argument("size {}: from buff {} on that goes past the last address", size, buff);
}

void check_excluded(const int* ranks, int count, const NcclComm& nccl_comm) {
  if (count < 0) refuse_argument("excludeRanksCount {}: expected 0 or more", count);
  if (count > 0) require(ranks, "excludeRanksList");
  const RankAndSize place = nccl_comm.place();
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= place.ranks)
      refuse_argument("excludeRanksList[{}] is {}: expected a rank, 0 to {}", i, ranks[i], place.ranks - 1);
    if (ranks[i] == place.rank)
      refuse_argument("excludeRanksList[{}] is {}, which is the rank that calls", i, ranks[i]);
  }
}

}  // namespace trellis::nccl
