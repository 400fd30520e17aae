// Threads that do a share of work at once. They stay, and wait for the next.
#pragma once

namespace trellis::kernels {

// Calls work(context, thread, threads) on each of `threads` threads at once and waits for all; work must not throw. The
// calling thread is the first, the others are its own. Inside of such work, all shares are done on the calling thread.
void run_team(int threads, void (*work)(void* context, int thread, int threads), void* context);

// How long threads of teams keep their cores while they wait for each other, before they sleep. Long is quickest where
// each has a core of its own, and takes the time of those that are waited for where it has none. Teams whose threads
// are more than this process's cores wait for a short time whatever is said here, and OMP_WAIT_POLICY and
// GOMP_SPINCOUNT of the environment decide alone where they are set, as they do for GCC's OpenMP.
enum class TeamWait : unsigned char { long_time, short_time };
void set_team_wait(TeamWait);
TeamWait team_wait();  // as it is for the next wait

// How often a waiting thread looks whether it may go on: by these two variables, null where they are not set.
struct TeamSpins {
  long long with_cores = 0, without = 0;
  bool adapts = true;  // less often after it looked in vain
};
TeamSpins team_spins_of(const char* policy, const char* count);

}  // namespace trellis::kernels
