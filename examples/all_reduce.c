// The sum of every rank's number, through the C API:
//
//   trellis launch -n 4 -- ./all_reduce_c
//   TRELLIS_DEVICE=sim:trn2.48xlarge trellis launch -n 4 -- ./all_reduce_c    # on simulated cores, with their time
#include <stdio.h>
#include <string.h>
#include <trellis.h>

#define COUNT 1000

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, trellis_last_error());
  return 1;
}

int main(void) {
  trellis_comm comm;
  if (trellis_comm_create_from_environment(&comm, NULL)) return failed("create");
  int rank, ranks;
  trellis_comm_rank(comm, &rank);
  trellis_comm_ranks(comm, &ranks);

  const char* device;
  if (trellis_device_name(&device)) return failed("device");

  void* memory;  // that other ranks can read directly
  if (trellis_alloc(&memory, COUNT * sizeof(float))) return failed("alloc");
  float* data = memory;
  for (int i = 0; i < COUNT; ++i) data[i] = (float)(rank + 1);

  int64_t before, after;  // picoseconds
  trellis_device_time(&before);
  if (trellis_all_reduce(comm, data, data, COUNT, TRELLIS_F32, TRELLIS_SUM, NULL)) return failed("all_reduce");
  trellis_device_time(&after);
  const float expected = (float)ranks * (float)(ranks + 1) / 2;
  for (int i = 0; i < COUNT; ++i)
    if (data[i] != expected) return fprintf(stderr, "element %d is %g, expected %g\n", i, data[i], expected), 1;
  printf("rank %d of %d: the sum is %g\n", rank, ranks, data[0]);
  if (rank == 0 && strcmp(device, "host") != 0) printf("%s: %.2f us\n", device, (double)(after - before) * 1e-6);

  if (trellis_free(memory)) return failed("free");
  if (trellis_comm_destroy(comm)) return failed("destroy");
  return 0;
}
