// The sum of every rank's number, through the C API:
//
//   trellis launch -n 4 -- ./all_reduce_c
#include <stdio.h>
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

  void* memory;  // that other ranks can read directly
  if (trellis_alloc(&memory, COUNT * sizeof(float))) return failed("alloc");
  float* data = memory;
  for (int i = 0; i < COUNT; ++i) data[i] = (float)(rank + 1);

  if (trellis_all_reduce(comm, data, data, COUNT, TRELLIS_F32, TRELLIS_SUM, NULL)) return failed("all_reduce");
  const float expected = (float)ranks * (float)(ranks + 1) / 2;
  for (int i = 0; i < COUNT; ++i)
    if (data[i] != expected) return fprintf(stderr, "element %d is %g, expected %g\n", i, data[i], expected), 1;
  printf("rank %d of %d: the sum is %g\n", rank, ranks, data[0]);

  if (trellis_free(memory)) return failed("free");
  if (trellis_comm_destroy(comm)) return failed("destroy");
  return 0;
}
