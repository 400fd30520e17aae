#include "ccl/api/c/device.h"

#include "ccl/api/boundary.h"
#include "ccl/api/objects.h"

using namespace trellis::ccl::api;

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
    return use.get() == nullptr || use.get()->idle() ? TRELLIS_OK : TRELLIS_IN_PROGRESS;
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
