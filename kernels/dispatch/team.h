// OpenMP's threads, behind a plain function.
#pragma once

namespace trellis::kernels {

// Calls work(context, thread, threads) on each of `threads` threads at once and waits for all.
void run_team(int threads, void (*work)(void* context, int thread, int threads), void* context);

}  // namespace trellis::kernels
