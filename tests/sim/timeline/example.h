// A small timeline with everything in it: waits, causes, overlapping spans, empty spans, counters, odd names.
#pragma once

#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

inline Timeline example() {
  Timeline t;
  const std::uint32_t load = t.track("core 0", "dma queue 0"), tensor = t.track("core 0", "tensor"),
                      send = t.track("links", "12 -> 13"), vector = t.track("core 0", "vector \"\xc3\xa9\" </script>");
  const std::uint32_t in_flight = t.counter("core 0", "bytes in flight"), depth = t.counter("switch", "depth");
  const auto label = [&](std::string_view text) { return t.label_of(text); };
  const std::int64_t a = t.add({.track = load, .label = label("load A"), .end = 2 * us, .bytes = 1e6});
  const std::int64_t b =
      t.add({.track = load, .label = label("load B"), .start = 500 * ns, .end = 3'000'500, .bytes = 1e6});
  const std::int64_t m = t.add({.track = tensor,
                                .label = label("matmul"),
                                .start = 3'100'500,
                                .end = 5 * us,
                                .ready = 0,
                                .cause = b,
                                .wait = WaitReason::semaphore,
                                .flops = 2e8});
  t.add({.track = tensor, .label = label("nothing"), .start = 5 * us, .end = 5 * us, .ready = 5 * us, .cause = m});
  const std::int64_t n = t.add({.track = tensor,
                                .label = label("matmul"),
                                .start = 5 * us,
                                .end = 7 * us,
                                .ready = 5 * us,
                                .cause = m,
                                .wait = WaitReason::order,
                                .flops = 2e8});
  t.add({.track = vector,
         .label = label("copy <out>"),
         .start = 2'100 * ns,
         .end = 2'500 * ns,
         .ready = 1 * us,
         .cause = a,
         .wait = WaitReason::data});
  t.add({.track = send,
         .label = label("send to 13"),
         .start = 7'250 * ns,
         .end = 10 * us,
         .ready = 7 * us,
         .cause = n,
         .wait = WaitReason::peer,
         .bytes = 2e6});
  t.samples = {{in_flight, 0, 2e6}, {in_flight, 2 * us, 1e6}, {in_flight, 3'000'500, 0}, {depth, 1 * us, -0.5}};
  return t;
}

}  // namespace trellis::sim
