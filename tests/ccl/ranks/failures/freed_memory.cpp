// Memory that a rank frees as soon as its operation has ended with an error: the others may be reading it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

// Memory with pages of its own. Processes that are forked later share it if it is `shared`.
class Pages {
 public:
  explicit Pages(std::size_t bytes, bool shared = false) : bytes_(bytes) {
    const int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_POPULATE;
    base_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Pages() { free(); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* data() const { return static_cast<char*>(base_); }
  // Unmaps the end first: that is what a reader that is under way reads last.
  void free() {
    constexpr std::size_t parts = 16;
    for (std::size_t i = parts; base_ != nullptr && i-- > 0;) munmap(data() + bytes_ / parts * i, bytes_ / parts);
    base_ = nullptr;
  }

 private:
  std::size_t bytes_;
  void* base_;
};

// Ends in time whether or not the data come.
void await_data(const char* place) {
  const Deadline end = Clock::now() + 2s;
  const volatile char* const seen = place;
  while (*seen == 0 && Clock::now() < end) std::this_thread::sleep_for(50us);
}

// Rank 0 aborts, from another thread, once the first bytes of its message have come; its buffer is unmapped as soon as
// its call has returned.
std::string abort_while_it_is_read(const std::string& transport) {
  constexpr std::size_t bytes = std::size_t{96} << 20;
  const Pages into(bytes, true);
  return run_ranks(transport, 2,
                   [&](Communicator& c) {
                     std::thread aside;
                     bool aborted = false;
                     Pages data(c.rank() == 0 ? bytes : 1 << 16);
                     if (c.rank() == 0) {
                       std::memset(data.data(), 1, bytes);
                       aside = std::thread([&] {
                         await_data(into.data());
                         c.abort();
                       });
                     }
                     try {
                       if (c.rank() == 0)
                         c.send(data.data(), bytes, DType::u8, 1);
                       else
                         c.recv(into.data(), bytes, DType::u8, 0);
                       while (true) c.barrier();  // all may have been read before the abort
                     } catch (const Aborted&) {
                       aborted = true;
                     }
                     data.free();
                     if (aside.joinable()) aside.join();
                     if (!aborted) throw std::runtime_error("nobody aborted it");
                   },
                   {.timeout = 30s, .single_copy = true});
}

TEST(FreedMemory, OfAMessageIsNotReadAfterAnAbort) {
  for (const std::string& transport : usable_transports())
    EXPECT_EQ(abort_while_it_is_read(transport), "") << transport;
}

// Each rank frees its input as soon as its operation has ended, and its output later: each round's messages are read in
// the inputs.
void abort_a_collective(Communicator& c, std::chrono::microseconds after, std::size_t bytes,
                        const std::function<void(Communicator&, char* in, char* out)>& call) {
  Pages in(bytes), out(bytes * 3);
  std::thread aside;
  if (c.rank() == 0)
    aside = std::thread([&, after] {
      std::this_thread::sleep_for(after);
      c.abort();
    });
  bool aborted = false;
  try {
    for (int i = 0; i < 1'000'000; ++i) call(c, in.data(), out.data());
  } catch (const Aborted&) {
    aborted = true;
  }
  in.free();
  if (aside.joinable()) aside.join();
  if (!aborted) throw std::runtime_error("nobody aborted it");
}

TEST(FreedMemory, OfACollectiveIsNotReadAfterAnAbort) {
  const auto all_reduce = [](std::size_t bytes) {
    return [bytes](Communicator& c, char* in, char* out) { c.all_reduce(in, out, bytes / 4, DType::f32); };
  };
  const auto all_gather = [](std::size_t bytes) {
    return [bytes](Communicator& c, char* in, char* out) { c.all_gather(in, out, bytes / 4, DType::f32); };
  };
  for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{8} << 20})
    for (int turn = 0; turn < 8; ++turn) {
      const auto after = std::chrono::microseconds(3'000 + 1'317 * turn);
      for (const auto& call : {std::function<void(Communicator&, char*, char*)>(all_reduce(bytes)),
                               std::function<void(Communicator&, char*, char*)>(all_gather(bytes))})
        EXPECT_EQ(run_threads(3, [&](Communicator& c) { abort_a_collective(c, after, bytes, call); },
                              {.timeout = 30s, .transport = "loopback"}),
                  "")
            << bytes << " bytes, turn " << turn;
    }
}

}  // namespace
}  // namespace trellis::ccl
