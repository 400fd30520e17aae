// Makes arbitrary calls to Trellis's own libnrt, which simulates the Neuron runtime, with handles that are valid,
// freed, or never created: each call returns a status, and none crashes. Four bytes of the input make a call: one
// chooses the function, three its arguments.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "device/conformance/sample_program.h"
#include "device/nrt/library.h"

namespace {

using namespace trellis::device;
using nrt::Status;

constexpr std::size_t arena_bytes = 1 << 16;

class Caller {
 public:
  explicit Caller(const nrt::NrtLibrary& l) : l_(l) {}
  ~Caller() { l_.nrt_close(); }

  void call(std::uint8_t which, std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    const int one = which % 40;
    if (one < 11) return tensors(one, a, b, c);
    return one < 24 ? runs(one, a, b, c) : rest(one, a, b, c);
  }

 private:
  void tensors(int which, std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    switch (which) {
      case 0:
        return check(l_.nrt_init(static_cast<nrt::Framework>(a % 7), "", nullptr));
      case 1:
        return a % 16 == 0 ? l_.nrt_close() : void();
      case 2:
        return allocate(a, b, c);
      case 3:
        return l_.nrt_tensor_free(a % 9 == 0 ? nullptr : &tensor(b));
      case 4:
        return check(l_.nrt_tensor_read(tensor(a), at(b), size(b), size(c)));
      case 5:
        return check(l_.nrt_tensor_write(tensor(a), at(b), size(b), size(c)));
      case 6:
        return check(l_.nrt_tensor_copy(tensor(a), size(c), tensor(b), size(a), size(b)));
      case 7:
        return check(l_.nrt_tensor_memset(tensor(a), size(b), b, size(c)));
      case 8:
        return check(l_.nrt_tensor_allocate_slice(tensor(a), size(b), size(c), nullptr, &tensor(b)));
      case 9:
        return check(l_.nrt_tensor_allocate_empty("e", a % 9 == 0 ? nullptr : &tensor(a)));
      case 10:
        return check(l_.nrt_tensor_attach_buffer(tensor(a), at(b), std::min<std::size_t>(size(c), 4096)));
      default:
        return;
    }
  }
  void runs(int which, std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    switch (which) {
      case 11:
        return check(l_.nrt_allocate_tensor_set(&set(a)));
      case 12:
        return l_.nrt_destroy_tensor_set(&set(a));
      case 13:
        return check(l_.nrt_add_tensor_to_tensor_set(set(a), name(b), tensor(c)));
      case 14:
        return check(l_.nrt_get_tensor_from_tensor_set(set(a), name(b), &tensor(c)));
      case 15:
        return check(l_.nrt_load(neff_.data(), neff_.size() - (a % 4 == 0 ? b : 0), core(b), -1, &model(c)));
      case 16:
        return check(l_.nrt_unload(model(a)));
      case 17:
        return check(l_.nrt_execute(model(a), set(b), set(c)));
      case 18:
        return check(l_.nrt_execute_repeat(model(a), set(b), set(c), a % 4));
      case 19:
        return check(l_.nrta_execute_schedule(model(a), set(b), set(c), a % 3 - 1, tracker(c), &sequence(b)));
      case 20:
        return check(l_.nrta_tensor_write(tensor(a), at(b), size(b), size(c), a % 3, tracker(b), &sequence(c)));
      case 21:
        return check(l_.nrta_tensor_read(at(b), tensor(a), size(b), size(c), b % 3, nullptr, &sequence(c)));
      case 22:
        return check(l_.nrta_tensor_copy(tensor(a), 0, tensor(b), 0, size(c), 0, tracker(a), nullptr));
      case 23:
        return check(l_.nrta_is_completed(sequence(a), b % 9 == 0 ? nullptr : &flag_));
      default:
        return;
    }
  }
  void rest(int which, std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    switch (which) {
      case 24:
        return handle(a);
      case 25:
        return check(l_.nrta_error_tracker_create(static_cast<std::uint32_t>(core(a)), &tracker(b)));
      case 26:
        return l_.nrta_error_tracker_destroy(tracker(a));
      case 27:
        return errors(a);
      case 28:
        return check(l_.nrta_get_sequence(a, static_cast<nrt::ExecutionUnit>(b % 7), c % 4 - 1, &sequence(c)));
      case 29:
        return prepare(a, b, c);
      case 30:
        return check(l_.nrta_cc_schedule(a % 9 == 0 ? nullptr : &context(b), c % 4, tracker(a), &sequence(b)));
      case 31:
        return gather(a, b);
      case 32:
        return info(a);
      case 33:
        return check(l_.nrt_get_vnc_memory_stats(a % 70, &stats_, b % 20, nullptr));
      case 34:
        return dmabuf(a, b);
      case 35:
        return check(l_.nrt_memcpy_to_device(l_.nrt_tensor_get_va(tensor(a)), at(b), size(c)));
      case 36:
        return check(a % 2 == 0 ? l_.nrt_trace_start(true) : l_.nrt_trace_stop("/dev/null"));
      case 37:
        return check(l_.nrt_tensor_check_output_completion(tensor(a), b, c));
      case 38:
        return check(l_.nrt_async_sendrecv_flush(core(a)));
      default:
        return check(l_.nrt_async_drain_queued_execs(core(a)));
    }
  }
  static void check(Status s) {
    const int value = static_cast<int>(s);
    if (value < 0 || value > 1206) std::abort();
  }
  nrt::Tensor*& tensor(std::uint8_t n) { return tensors_[n % tensors_.size()]; }
  nrt::TensorSet*& set(std::uint8_t n) { return sets_[n % sets_.size()]; }
  nrt::Model*& model(std::uint8_t n) { return models_[n % models_.size()]; }
  nrt::ErrorTracker*& tracker(std::uint8_t n) { return trackers_[n % trackers_.size()]; }
  nrt::CollectiveContext*& context(std::uint8_t n) { return contexts_[n % contexts_.size()]; }
  nrt::Sequence& sequence(std::uint8_t n) { return sequences_[n % sequences_.size()]; }
  static int core(std::uint8_t n) { return n % 5 == 4 ? n - 128 : n % 3; }
  static std::size_t size(std::uint8_t n) {
    constexpr std::size_t all[] = {0, 1, 7, 4096, 65'536, 65'537, std::size_t{1} << 40, SIZE_MAX};
    return all[n % 8];
  }
  // Queued work may use the arena, but not after this object has gone: nrt_close comes first, and waits for it. Tensors
  // are no larger than the arena, so a copy past its end is refused.
  void* at(std::uint8_t n) { return n % 16 == 0 ? nullptr : arena_.data(); }
  static const char* name(std::uint8_t n) {
    constexpr const char* all[] = {"a", "b", "out", "other", nullptr};
    return all[n % 5];
  }
  void allocate(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    const std::size_t bytes = size(c) <= arena_bytes + 1 ? size(c) : std::size_t{1} << 60;
    check(l_.nrt_tensor_allocate(static_cast<nrt::TensorPlacement>(a % 4), core(b), bytes, "t", &tensor(a)));
  }
  void handle(std::uint8_t n) {
    int fd = -1;
    check(l_.nrta_get_completion_handle(sequence(n), &fd));
    if (fd >= 0) close(fd);
  }
  void errors(std::uint8_t n) {
    const nrt::AsyncError* list = nullptr;
    std::size_t count = 0;
    check(l_.nrta_error_tracker_get_list(tracker(n), &list, &count));
    for (std::size_t i = 0; i < count; ++i) check(static_cast<Status>(list[i].error_code));
  }
  void prepare(std::uint8_t a, std::uint8_t b, std::uint8_t c) {
    std::uint32_t group[] = {0, 0};
    nrt::CommInfo comm{a % 5 == 0 ? nullptr : group, 0, 1U + (c % 8 == 0), 0, 1U, a % 3U};
    nrt::Tensor *in = tensor(a), *out = tensor(b);
    nrt::TensorList ins{&in, 1}, outs{&out, c % 4 == 0 ? 0U : 1U};
    check(l_.nrta_cc_prepare(&comm, &ins, &outs, static_cast<nrt::NrtDType>(c % 17),
                             static_cast<nrt::ReduceKind>(a % 5), static_cast<nrt::CollectiveKind>(b % 4),
                             &context(c)));
  }
  void gather(std::uint8_t a, std::uint8_t b) {
    check(l_.nrt_all_gather(core(a), 0, b % 8 == 0 ? 0 : 1, b, arena_.data(), arena_.data() + 1024));
  }
  void info(std::uint8_t n) {
    nrt::TensorInfoArray* array = nullptr;
    check(l_.nrt_get_model_tensor_info(model(n), &array));
    if (array != nullptr) check(l_.nrt_free_model_tensor_info(array));
  }
  void dmabuf(std::uint8_t a, std::uint8_t b) {
    int fd = -1;
    check(l_.nrt_get_dmabuf_fd(reinterpret_cast<std::uint64_t>(l_.nrt_tensor_get_va(tensor(a))) + b % 2, size(b), &fd));
    if (fd >= 0) close(fd);
  }

  const nrt::NrtLibrary& l_;
  const std::vector<std::byte> neff_ = sample_container();
  alignas(8) std::array<std::byte, 2 * arena_bytes> arena_ = {};
  std::array<nrt::Tensor*, 6> tensors_ = {};
  std::array<nrt::TensorSet*, 3> sets_ = {};
  std::array<nrt::Model*, 2> models_ = {};
  std::array<nrt::ErrorTracker*, 2> trackers_ = {};
  std::array<nrt::CollectiveContext*, 2> contexts_ = {};
  std::array<nrt::Sequence, 4> sequences_ = {};
  nrt::MemoryStats stats_ = {};
  bool flag_ = false;
};

const nrt::NrtLibrary& library() {
  static const nrt::NrtLibrary* const one = [] {
    setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);         // NOLINT(concurrency-mt-unsafe): at the start
    setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);          // NOLINT(concurrency-mt-unsafe)
    setenv("TRELLIS_NRT_MACHINE", "trn2.3xlarge", 1);  // NOLINT(concurrency-mt-unsafe)
    return new nrt::NrtLibrary(TRELLIS_STANDIN);
  }();
  return *one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Caller caller(library());
  caller.call(0, 1, 0, 0);
  for (std::size_t i = 0; i + 4 <= size && i < 400; i += 4) caller.call(data[i], data[i + 1], data[i + 2], data[i + 3]);
  return 0;
}
