#include "kernels/dispatch/parallel.h"

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <vector>

#include "kernels/dispatch/thread_team.h"
#include "kernels/dispatch/useful_threads.h"

namespace trellis::kernels {
namespace {

struct Work {
  const std::function<void(std::size_t, std::size_t)>& share;
  std::size_t parts;
  std::mutex mutex = {};
  std::exception_ptr thrown = nullptr;
};

void share(void* context, int thread, int threads) {
  Work& work = *static_cast<Work*>(context);
  const auto border = [&](int t) { return work.parts / threads * t + std::min<std::size_t>(work.parts % threads, t); };
  try {
    if (border(thread) < border(thread + 1)) work.share(border(thread), border(thread + 1));
  } catch (...) {
    const std::lock_guard lock(work.mutex);
    if (!work.thrown) work.thrown = std::current_exception();
  }
}

constexpr std::size_t few_elements = 4;        // so few that plain code is faster than a twin's beginning and end
constexpr std::size_t cached_elements = 1024;  // so few that they fit the caches, whatever their type
constexpr std::size_t most_operands = 16;      // more need memory from the heap

std::size_t read_size(const Kernel& kernel, int i) {
  return size_of(kernel.reads[std::min<std::size_t>(static_cast<std::size_t>(i), kernel.reads.size() - 1)]);
}

}  // namespace

void parallel(int threads, std::size_t parts, const std::function<void(std::size_t, std::size_t)>& work) {
  if (parts == 0) return;
  const int useful = useful_threads(threads, parts, cpu().cores);
  if (useful == 1) return work(0, parts);
  Work all{.share = work, .parts = parts};
  run_team(useful, share, &all);
  if (all.thrown) std::rethrow_exception(all.thrown);
}

void run_parts(const Kernel& kernel, Body body, const KernelArguments& whole, int threads) {
  if (whole.n == 0) return;
  if (threads == 1 || parts_of(whole.n) == 1) return body(whole);
  const std::size_t pointers = kernel.writes.size() + static_cast<std::size_t>(whole.sources);
  parallel(threads, parts_of(whole.n), [&](std::size_t from, std::size_t to) {
    std::array<void*, most_operands> few;
    std::vector<void*> lots(pointers > few.size() ? pointers : 0);
    void** const place = lots.empty() ? few.data() : lots.data();
    const std::size_t at = from * part_elements;
    for (std::size_t w = 0; w < kernel.writes.size(); ++w)
      place[w] = static_cast<std::byte*>(whole.writes[w]) + (kernel.sums ? from : at) * size_of(kernel.writes[w]);
    const void** const reads = const_cast<const void**>(place + kernel.writes.size());
    for (int i = 0; i < whole.sources; ++i)
      reads[i] = static_cast<const std::byte*>(whole.reads[i]) + at * read_size(kernel, i);
    KernelArguments piece = whole;
    piece.n = std::min(whole.n, to * part_elements) - at;
    piece.writes = place;
    piece.reads = reads;
    piece.first += at;
    body(piece);
  });
}

void run(const Kernel& kernel, const KernelArguments& whole, int threads) {
  if (whole.n != 0 && whole.n <= few_elements) return kernel.truth(whole);
  if (whole.n != 0 && whole.n <= cached_elements) return kernel.chosen()(whole);
  std::size_t bytes = 0;
  for (std::size_t w = 0; w < kernel.writes.size() && !kernel.sums; ++w)
    bytes += size_of(kernel.writes[w]) * (kernel.updates_operand(w) ? 2 : 1);
  for (int i = 0; i < whole.sources; ++i) bytes += read_size(kernel, i);
  KernelArguments s = whole;
  const bool large = whole.n > cpu().out_of_cache() / std::max<std::size_t>(bytes, 1);
  s.streaming = whole.streaming || (large && !kernel.updates_operand(0));
  run_parts(kernel, kernel.chosen(), s, threads);
}

}  // namespace trellis::kernels
