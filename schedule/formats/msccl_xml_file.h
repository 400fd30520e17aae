// The contents of an MSCCL XML file as plain structs, and their reader and writer.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"

namespace trellis::schedule::msccl {

enum class XmlStepType : std::uint8_t { s, r, rcs, rrs, rrc, rrcs, cpy, re, nop };

constexpr bool receives(XmlStepType t) {
  return t == XmlStepType::r || t == XmlStepType::rcs || t == XmlStepType::rrs || t == XmlStepType::rrc ||
         t == XmlStepType::rrcs;
}
constexpr bool sends(XmlStepType t) {
  return t == XmlStepType::s || t == XmlStepType::rcs || t == XmlStepType::rrs || t == XmlStepType::rrcs;
}
constexpr bool needs_source(XmlStepType t) {
  return t != XmlStepType::r && t != XmlStepType::rcs && t != XmlStepType::nop;
}
constexpr bool needs_target(XmlStepType t) {
  return t != XmlStepType::s && t != XmlStepType::rrs && t != XmlStepType::nop;
}

struct BufferOffset {
  Buffer buffer = Buffer::input;
  std::int32_t offset = 0;
};

struct XmlStep {
  XmlStepType type = XmlStepType::nop;
  BufferOffset source, target;
  std::int32_t count = 0;
  std::int32_t wait_block = -1;  // id of the thread block to wait for; negative: none
  std::int32_t wait_step = -1;
  bool waited_for = false;
};

struct XmlThreadBlock {
  std::int32_t id = 0;
  Rank send = -1, recv = -1;
  std::int32_t channel = 0;
  std::vector<XmlStep> steps;
};

struct XmlGpu {
  std::int32_t inputs = 0, outputs = 0, scratch = 0;  // in chunks
  std::vector<XmlThreadBlock> blocks;
};

struct XmlFile {
  std::string name, collective;
  std::int32_t channels = 1;
  std::int32_t chunks = 1;  // in the larger buffer
  bool in_place = false, out_of_place = true;
  std::vector<XmlGpu> gpus;  // by rank
};

constexpr std::size_t most_blocks = 256;  // per gpu; the runtimes allow 64

XmlFile read(std::string_view xml);  // throws invalid_argument with the position in the text
std::string write(const XmlFile&);

}  // namespace trellis::schedule::msccl
