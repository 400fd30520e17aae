#include "kernels/dispatch/team.h"

namespace trellis::kernels {

void run_team(int threads, void (*work)(void*, int, int), void* context) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) work(context, thread, threads);
}

}  // namespace trellis::kernels
