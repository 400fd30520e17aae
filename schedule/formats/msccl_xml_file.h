// The contents of an MSCCL XML file as plain structs, and their reader and writer.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule::msccl {

enum class Type : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };

constexpr bool receives(Type t) {
  return t == Type::r || t == Type::rcs || t == Type::rrs || t == Type::rrc || t == Type::rrcs;
}
constexpr bool sends(Type t) { return t == Type::s || t == Type::rcs || t == Type::rrs || t == Type::rrcs; }
constexpr bool needs_source(Type t) { return t != Type::r && t != Type::rcs && t != Type::nop; }
constexpr bool needs_target(Type t) { return t != Type::s && t != Type::rrs && t != Type::nop; }

struct Where {
  Buffer buffer = Buffer::input;
  std::int32_t offset = 0;
};

struct XmlStep {
  Type type = Type::nop;
  Where source, target;
  std::int32_t count = 0;
  std::int32_t wait_block = -1;  // id of the thread block to wait for; negative: none
  std::int32_t wait_step = -1;
  bool waited_for = false;
};

struct XmlBlock {
  std::int32_t id = 0;
  Rank send = -1, recv = -1;
  std::int32_t channel = 0;
  std::vector<XmlStep> steps;
};

struct XmlGpu {
  std::int32_t inputs = 0, outputs = 0, scratch = 0;  // in chunks
  std::vector<XmlBlock> blocks;
};

struct File {
  std::string name, collective;
  std::int32_t channels = 1;
  std::int32_t chunks = 1;  // in the larger buffer
  bool in_place = false, out_of_place = true;
  std::vector<XmlGpu> gpus;  // by rank
};

constexpr std::size_t most_blocks = 256;  // per gpu; the runtimes allow 64

File read(std::string_view xml);  // throws invalid_argument with the position in the text
std::string write(const File&);

}  // namespace trellis::schedule::msccl
