#include "ccl/api/c/device.h"
#include "device/simulated_time.h"

#include <fmt/format.h>

#include <utility>

#include "ccl/api/handles/exception_boundary.h"
#include "ccl/api/handles/handle_tables.h"
#include "kernels/dispatch/available_memory.h"

using namespace trellis::ccl::api;

namespace {

// The stream whose work this thread does; null: none.
constinit thread_local const trellis::device::Stream* working_for = nullptr;

struct Working {
  explicit Working(const trellis::device::Stream* stream) : before(std::exchange(working_for, stream)) {}
  ~Working() { working_for = before; }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
  const trellis::device::Stream* const before;
};

void expect_another(const StreamRef& stream, const char* what) {
  if (stream.get() != nullptr && stream.get() == working_for)
    throw UsageError(fmt::format("a stream's own work cannot {} it: it would wait for itself", what));
}

// One piece of a stream's work, destroyed with the stream's copy of it. If the work was not run by then, `dropped` is
// called.
class Piece {
 public:
  using Function = void (*)(void*);
  Piece(const trellis::device::Stream* stream, Function work, Function dropped, void* argument)
      : stream_(stream), work_(work), dropped_(dropped), argument_(argument) {}
  ~Piece() {
    const Working working(stream_);
    if (!ran_) dropped_(argument_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  void run() {
    const Working working(stream_);
    ran_ = true;
    work_(argument_);
  }
  void refused() { ran_ = true; }  // the stream has not taken it: the argument stays the caller's

 private:
  const trellis::device::Stream* const stream_;
  const Function work_, dropped_;
  void* const argument_;
  bool ran_ = false;
};

// Checks the name under which memory is allocated, which an out-of-memory error lists.
std::string_view function_named(const char* function) {
  require(function, "function");
  if (*function == '\0') throw std::invalid_argument("function is empty: expected the name of one that allocates");
  return function;
}

}  // namespace

trellis_result trellis_alloc_by(const char* function, void** memory, size_t bytes) {
  return guarded([&] {
    require(memory, "memory");
    *memory = nullptr;
    *memory = user_memory().allocate(*device(), function_named(function), bytes);
  });
}
trellis_result trellis_free_by(const char* function, void* memory) {
  return guarded([&] { user_memory().release(*device(), function_named(function), memory); });
}
trellis_result trellis_alloc(void** memory, size_t bytes) { return trellis_alloc_by("trellis_alloc", memory, bytes); }
trellis_result trellis_free(void* memory) { return trellis_free_by("trellis_alloc", memory); }
trellis_result trellis_allocated_bytes(size_t* bytes) {
  return guarded([&] {
    require(bytes, "bytes");
    *bytes = device()->allocated_bytes();
  });
}

trellis_result trellis_host_memory(size_t* available, size_t* total) {
  return guarded([&] {
    const auto told = [](std::uint64_t bytes) { return bytes == trellis::kernels::unknown_memory ? 0 : bytes; };
    if (available != nullptr) *available = told(trellis::kernels::available_memory());
    if (total != nullptr) *total = told(trellis::kernels::total_memory());
  });
}

trellis_result trellis_device_name(const char** name) {
  return guarded([&] {
    require(name, "name");
    static const std::string kept(device()->name());
    *name = kept.c_str();
  });
}
trellis_result trellis_device_time(int64_t* picoseconds) {
  return guarded([&] {
    require(picoseconds, "picoseconds");
    *picoseconds = clock_of(*device()).time;
  });
}

trellis_result trellis_copy(void* to, const void* from, size_t bytes, trellis_stream stream) {
  return guarded([&] {
    const StreamRef use(stream);
    if (bytes == 0) return;
    require(to, "to");
    require(from, "from");
    if (use.get() == nullptr) return device()->copy(to, from, bytes);
    use.get()->submit([=] { device()->copy(to, from, bytes); });
  });
}

trellis_result trellis_stream_create(trellis_stream* stream) {
  return guarded([&] {
    require(stream, "stream");
    *stream = nullptr;
    *stream = static_cast<trellis_stream>(streams().add(device()->stream()));
  });
}
trellis_result trellis_stream_destroy(trellis_stream stream) {
  return guarded([&] {
    if (stream == nullptr) return;
    expect_another(StreamRef(stream), "destroy");
    streams().take(stream);
  });
}
trellis_result trellis_stream_synchronize(trellis_stream stream) {
  return guarded([&] {
    const StreamRef use(stream);
    expect_another(use, "wait for");
    if (use.get() != nullptr) use.get()->synchronize();
  });
}
trellis_result trellis_stream_query(trellis_stream stream) {
  return guarded([&]() -> trellis_result {
    const StreamRef use(stream);
    if (use.get() == nullptr) return TRELLIS_OK;
    if (!use.get()->idle()) return TRELLIS_IN_PROGRESS;
    use.get()->synchronize();  // now, to throw its error
    return TRELLIS_OK;
  });
}
trellis_result trellis_stream_call(trellis_stream stream, void (*work)(void*), void* argument) {
  return guarded([&] {
    const StreamRef use(stream);
    require(reinterpret_cast<const void*>(work), "work");
    if (use.get() == nullptr) return work(argument);
    use.get()->submit([=, stream = use.get()] {
      const Working working(stream);
      work(argument);
    });
  });
}

trellis_result trellis_stream_call_or(trellis_stream stream, void (*work)(void*), void (*dropped)(void*),
                                      void* argument) {
  return guarded([&] {
    const StreamRef use(stream);
    require(reinterpret_cast<const void*>(work), "work");
    require(reinterpret_cast<const void*>(dropped), "dropped");
    if (use.get() == nullptr) return work(argument);
    const auto piece = std::make_shared<Piece>(use.get(), work, dropped, argument);
    try {
      use.get()->submit([piece] { piece->run(); });
    } catch (...) {
      piece->refused();
      throw;
    }
  });
}
trellis_result trellis_stream_work(int* inside) {
  return guarded([&] {
    require(inside, "inside");
    *inside = working_for != nullptr ? 1 : 0;
  });
}

trellis_result trellis_event_create(trellis_event* event) {
  return guarded([&] {
    require(event, "event");
    *event = nullptr;
    *event = static_cast<trellis_event>(events().add(device()->event()));
  });
}
trellis_result trellis_event_destroy(trellis_event event) {
  return guarded([&] {
    if (event != nullptr) events().take(event);
  });
}
trellis_result trellis_event_record(trellis_event event, trellis_stream stream) {
  return guarded([&] { events().use(event)->record(StreamRef(stream).get()); });
}
trellis_result trellis_event_query(trellis_event event) {
  return guarded([&]() -> trellis_result { return events().use(event)->ready() ? TRELLIS_OK : TRELLIS_IN_PROGRESS; });
}
trellis_result trellis_event_synchronize(trellis_event event) {
  return guarded([&] { events().use(event)->synchronize(); });
}
trellis_result trellis_stream_wait(trellis_stream stream, trellis_event event) {
  return guarded([&] { events().use(event)->wait(StreamRef(stream).get()); });
}
