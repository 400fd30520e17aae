// Tests make up to eight ranks by ncclCommInitAll, each on a device of its own, however many CPUs there are.
#include <cstdlib>

[[gnu::constructor]] static void have_many_devices() { setenv("TRELLIS_DEVICES", "16", 0); }
