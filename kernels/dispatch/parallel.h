// Work on a range of elements, cut in one fixed way and shared among threads.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

// Elements in a part. A part's borders never depend on the number of threads, so what is summed up by parts (dot,
// norms: one partial result a part, added in order) doesn't either.
inline constexpr std::size_t part_elements = 16384;

constexpr std::size_t parts_of(std::size_t n) { return n / part_elements + (n % part_elements != 0); }

// Calls work(first part, one past the last part) once a thread, with adjacent shares of all parts; on this thread alone
// when there is one thread or one part. 0 threads: one for each core that this process may use. An exception that work
// throws comes out of here.
void parallel(int threads, std::size_t parts, const std::function<void(std::size_t, std::size_t)>& work);

// Runs the chosen body of an elementwise kernel over all elements, with the parts shared among threads. Decides once,
// from the bytes touched, whether writes go past the caches, unless the arguments say already that they do.
void run(const Kernel&, const KernelArguments&, int threads);

// The same, but the caller chooses the body and whether writes go past the caches; timings compare the choices.
void run_parts(const Kernel&, Body, const KernelArguments&, int threads);

}  // namespace trellis::kernels
