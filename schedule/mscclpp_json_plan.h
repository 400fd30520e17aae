// What an execution plan says, as plain values, before anything is made of it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule::mscclpp {

enum class Kind : std::uint8_t {
  nop,
  barrier,
  signal,
  wait,
  relaxed_signal,
  relaxed_wait,
  release,
  acquire,
  copy,    // from here to here
  put,     // from here to there
  get,     // from there to here
  reduce,  // what is here, and then here or there, to here, and from here to there
};

constexpr bool moves(Kind k) { return k >= Kind::copy; }

// A run of chunks of this gpu or, in puts, gets and reductions, of another.
struct Chunks {
  Rank rank = 0;
  Buffer buffer = Buffer::input;
  std::int32_t first = 0;
  std::int32_t count = 0;
};

struct Operation {
  Kind kind = Kind::nop;
  std::vector<Chunks> sources, targets;  // of one length
  std::vector<std::int32_t> ids;         // channels of the gpu to signal or to wait on; semaphores; the barrier
  std::int32_t blocks = 0;               // that meet at the barrier
};

struct Block {
  std::vector<Operation> operations;
};

struct Gpu {
  std::int32_t inputs = 0, outputs = 0, scratch = 0;  // chunks
  std::vector<Rank> channels;                         // who is at the other end
  std::vector<std::int32_t> semaphores;               // how often each can be acquired at first
  std::vector<Block> blocks;
};

struct Plan {
  std::string name, collective;
  bool in_place = false;
  std::vector<Gpu> gpus;  // by rank
};

Plan read(std::string_view json);  // throws invalid_argument with the place
std::string place(Rank, std::size_t block, std::size_t operation);

}  // namespace trellis::schedule::mscclpp
