#include "ccl/api/c/device.h"

#include "ccl/api/handles/boundary.h"
#include "ccl/api/handles/objects.h"

using namespace trellis::ccl::api;

namespace {

// One piece of a stream's work. Destroyed with the stream's copy of it, whether or not it has run.
class Piece {
 public:
  using Function = void (*)(void*);
  Piece(Function work, Function dropped, void* argument) : work_(work), dropped_(dropped), argument_(argument) {}
  ~Piece() {
    if (!ran_) dropped_(argument_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  void run() {
    ran_ = true;
    work_(argument_);
  }

 private:
  const Function work_, dropped_;
  void* const argument_;
  bool ran_ = false;
};

}  // namespace

trellis_result trellis_alloc(void** memory, size_t bytes) {
  return guarded([&] {
    require(memory, "memory");
    *memory = nullptr;
    *memory = device()->allocate(bytes);
  });
}
trellis_result trellis_free(void* memory) {
  return guarded([&] { device()->release(memory); });
}
trellis_result trellis_allocated_bytes(size_t* bytes) {
  return guarded([&] {
    require(bytes, "bytes");
    *bytes = device()->allocated_bytes();
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
    *picoseconds = device()->clock().time;
  });
}

trellis_result trellis_copy(void* to, const void* from, size_t bytes, trellis_stream stream) {
  return guarded([&] {
    const StreamUse use(stream);
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
    if (stream != nullptr) streams().take(stream);
  });
}
trellis_result trellis_stream_synchronize(trellis_stream stream) {
  return guarded([&] {
    const StreamUse use(stream);
    if (use.get() != nullptr) use.get()->synchronize();
  });
}
trellis_result trellis_stream_query(trellis_stream stream) {
  return guarded([&]() -> trellis_result {
    const StreamUse use(stream);
    if (use.get() == nullptr) return TRELLIS_OK;
    if (!use.get()->idle()) return TRELLIS_IN_PROGRESS;
    use.get()->synchronize();  // now, to throw its error
    return TRELLIS_OK;
  });
}
trellis_result trellis_stream_call(trellis_stream stream, void (*work)(void*), void* argument) {
  return guarded([&] {
    const StreamUse use(stream);
    require(reinterpret_cast<const void*>(work), "work");
    if (use.get() == nullptr) return work(argument);
    use.get()->submit([=] { work(argument); });
  });
}

trellis_result trellis_stream_call_or(trellis_stream stream, void (*work)(void*), void (*dropped)(void*),
                                      void* argument) {
  return guarded([&] {
    const StreamUse use(stream);
    require(reinterpret_cast<const void*>(work), "work");
    require(reinterpret_cast<const void*>(dropped), "dropped");
    if (use.get() == nullptr) return work(argument);
    auto piece = std::make_shared<Piece>(work, dropped, argument);
    use.get()->submit([piece = std::move(piece)] { piece->run(); });  // the stream has the only reference
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
  return guarded([&] { events().use(event)->record(StreamUse(stream).get()); });
}
trellis_result trellis_event_query(trellis_event event) {
  return guarded([&]() -> trellis_result { return events().use(event)->ready() ? TRELLIS_OK : TRELLIS_IN_PROGRESS; });
}
trellis_result trellis_event_synchronize(trellis_event event) {
  return guarded([&] { events().use(event)->synchronize(); });
}
trellis_result trellis_stream_wait(trellis_stream stream, trellis_event event) {
  return guarded([&] { events().use(event)->wait(StreamUse(stream).get()); });
}
