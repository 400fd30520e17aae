/* The MPI side of bench/peers/run.py: times an MPI library as ours is timed. Prints one line per size: bytes, then the
   median and the 99th percentile in microseconds of the slowest rank per iteration. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synchronized_start.h"

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void call(const char* op, char* in, char* out, size_t bytes, int rank, int ranks) {
  const int count = (int)(bytes / sizeof(float)), block = count / ranks;
  if (!strcmp(op, "all_reduce")) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(op, "reduce_scatter")) MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(op, "all_gather")) MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  if (!strcmp(op, "all_to_all")) MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, MPI_COMM_WORLD);
  if (!strcmp(op, "broadcast")) MPI_Bcast(in, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  if (!strcmp(op, "sendrecv"))
    MPI_Sendrecv(in, count, MPI_FLOAT, (rank + 1) % ranks, 0, out, count, MPI_FLOAT, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double begin_call(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (!begins_together()) return now_us();
  double at = soon_us();
  MPI_Bcast(&at, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return wait_until(at);
}

int main(int argc, char** argv) {
  if (argc < 3) return fprintf(stderr, "usage: mpi_peer OP BYTES...\n"), 2;
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int a = 2; a < argc; ++a) {
    const size_t bytes = strtoull(argv[a], NULL, 10);
    const int times = bytes < 65536 ? 2000 : bytes < (4u << 20) ? 200 : 15;
    char* const in = malloc(bytes + 64);
    char* const out = malloc(bytes + 64);
    double* const took = malloc(sizeof(double) * (size_t)times);
    double* const worst = malloc(sizeof(double) * (size_t)times);
    memset(in, 0, bytes + 64);
    memset(out, 0, bytes + 64);
    for (int i = 0; i < times; ++i) {
      for (size_t q = 0; q < bytes / sizeof(float); q += 16) ((float*)in)[q] += 1 + 0 * ((float*)out)[q];
      const double begin = begin_call();
      call(argv[1], in, out, bytes, rank, ranks);
      took[i] = now_us() - begin;
    }
    MPI_Reduce(took, worst, times, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      qsort(worst, (size_t)times, sizeof(double), by_value);
      printf("%zu %.3f %.3f\n", bytes, worst[times / 2], worst[times * 99 / 100]);
      fflush(stdout);
    }
    free(in), free(out), free(took), free(worst);
  }
  MPI_Finalize();
  return 0;
}
