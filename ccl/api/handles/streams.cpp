// Default streams by number, and the streams that they order.

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "ccl/api/handles/exception_boundary.h"
#include "ccl/api/handles/handle_tables.h"
#include "device/fork_safe_singleton.h"
#include "device/streams/default_stream_sync.h"
#include "text/refuse.h"

using namespace trellis::ccl::api;
using trellis::device::DefaultStreamSync;

namespace {

std::atomic<bool> in_use = false;

// The default stream of one number, and the streams that it orders.
struct Numbered {
  DefaultStreamSync streams{device()};
  trellis_stream default_stream = nullptr;
  std::vector<trellis_stream> spare = {};  // of threads that have ended
};

struct Kept {
  std::mutex mutex;
  std::map<int, Numbered> numbered;
};
Kept& kept() {
  return trellis::device::of_this_process([] { return new Kept; });
}

void check_number(int number) {
  if (number < 0) trellis::text::refuse("number {}: expected 0 or more", number);
}

trellis_stream handle_of(std::shared_ptr<trellis::device::Stream> stream) {
  return static_cast<trellis_stream>(streams().add(std::move(stream)));
}

// Whether the stream no longer exists: a thread may have destroyed its own stream.
bool is_destroyed(trellis_stream one) {
  try {
    StreamRef{one};
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  }
}

// Takes an idle stream and clears the error that its former thread's work may have left; null: none is idle.
trellis_stream take_spare(std::vector<trellis_stream>& spare) {
  std::erase_if(spare, is_destroyed);
  const auto found = std::ranges::find_if(spare, [](trellis_stream one) { return StreamRef(one).get()->idle(); });
  if (found == spare.end()) return nullptr;
  const trellis_stream stream = *found;
  spare.erase(found);
  try {
    StreamRef(stream).get()->synchronize();
  } catch (...) {  // nobody is left to report it to
  }
  return stream;
}

// A thread's own streams. It returns them when it ends.
struct OfThread {
  OfThread() = default;
  ~OfThread() {
    if (owner == nullptr || owner != &kept()) return;
    const std::lock_guard lock(owner->mutex);
    for (const auto& [number, stream] : by_number)
      if (stream != nullptr) owner->numbered[number].spare.push_back(stream);
  }
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;
  Kept* owner = nullptr;  // changes after a fork: the parent's streams mean nothing in the child
  std::map<int, trellis_stream> by_number;
};

}  // namespace

trellis_result trellis_default_streams_use(void) {
  return guarded([] { in_use = true; });
}

trellis_result trellis_default_stream(int number, trellis_stream* stream) {
  return guarded([&] {
    require(stream, "stream");
    *stream = nullptr;
    check_number(number);
    if (!in_use) return;
    const std::lock_guard lock(kept().mutex);
    Numbered& one = kept().numbered[number];
    if (one.default_stream == nullptr) one.default_stream = handle_of(one.streams.default_stream());
    *stream = one.default_stream;
  });
}

trellis_result trellis_ordered_stream_create(int number, trellis_stream* stream) {
  return guarded([&] {
    require(stream, "stream");
    *stream = nullptr;
    check_number(number);
    const std::lock_guard lock(kept().mutex);
    *stream = handle_of(kept().numbered[number].streams.stream());
  });
}

trellis_result trellis_thread_stream(int number, trellis_stream* stream) {
  return guarded([&] {
    require(stream, "stream");
    *stream = nullptr;
    check_number(number);
    thread_local OfThread mine;
    if (std::exchange(mine.owner, &kept()) != &kept()) mine.by_number.clear();
    trellis_stream& own = mine.by_number[number];
    if (own == nullptr) {
      const std::lock_guard lock(kept().mutex);
      Numbered& one = kept().numbered[number];
      own = take_spare(one.spare);
      if (own == nullptr) own = handle_of(one.streams.stream());
    }
    *stream = own;
  });
}
