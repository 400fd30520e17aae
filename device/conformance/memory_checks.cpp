// Memory: what allocate() gives, who holds it, and copies.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "device/capabilities.h"
#include "device/conformance/device_buffer.h"
#include "device/memory_accounting.h"

namespace trellis::device {
namespace {

constexpr std::size_t page = 4096;

void memory(Device& d) {
  const std::size_t before = d.memory().used;
  std::vector<std::unique_ptr<DeviceBuffer>> all;
  for (const std::size_t bytes : {std::size_t{1}, page, std::size_t{5000}, std::size_t{1'000'000}, std::size_t{0}}) {
    all.push_back(std::make_unique<DeviceBuffer>(d, bytes));
    expect(reinterpret_cast<std::uintptr_t>(all.back()->data()) % page == 0, "{} bytes do not begin a page", bytes);
    const auto is = all.back()->get<unsigned char>();
    expect(std::ranges::count(is, 0) == static_cast<std::ptrdiff_t>(bytes), "{} new bytes are not zero", bytes);
    d.fill(all.back()->data(), static_cast<std::byte>(all.size()), bytes);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto is = all[i]->get<unsigned char>();
    expect(std::ranges::count(is, i + 1) == static_cast<std::ptrdiff_t>(is.size()), "pieces of memory overlap");
  }
  expect(d.memory().used >= before + 1'000'000, "{} bytes are used; more were allocated", d.memory().used);
  all.clear();
  expect(d.memory().used == before, "{} bytes are used after all was released; expected {}", d.memory().used, before);
}

void release(Device& d) {
  auto* const piece = static_cast<std::byte*>(d.allocate(10'000, "conformance"));
  d.release(piece);
  expect_refused<std::invalid_argument>("memory released twice", [&] { d.release(piece); });
  int elsewhere = 0;
  expect_refused<std::invalid_argument>("memory of somebody else", [&] { d.release(&elsewhere); });
  const DeviceBuffer other(d, 10'000);
  expect_refused<std::invalid_argument>("the middle of a piece", [&] { d.release(other.data() + page); });
  d.release(nullptr);
}

void out_of_memory(Device& d) {
  const DeviceBuffer held(d, 3'000'000, "weights of conformance");
  const std::string why = expect_refused<OutOfMemory>("more memory than there is",
                                                      [&] { d.release(d.allocate(SIZE_MAX / 2, "activations")); });
  for (const char* word : {"activations", "weights of conformance", "3000000"})
    expect(why.find(word) != std::string::npos, "'{}' does not say '{}'", why, word);
  const MemoryUse use = d.memory();
  expect(std::ranges::find(use.holders, "weights of conformance", &MemoryHolder::what) != use.holders.end(),
         "the accounts do not know who holds what");
  expect(use.limit == 0 || use.limit > use.used, "{} of {} bytes are used", use.used, use.limit);
}

void copies(Device& d) {
  DeviceBuffer a(d, 100'003), b(d, 100'003);
  const auto wanted = numbered(100'003, 1);
  a.put(wanted);
  d.copy(b.data(), a.data(), b.bytes());
  expect(b.get<unsigned char>() == wanted, "bytes changed on the way from host to device to device to host");
  std::vector<unsigned char> there(100'003);
  d.copy(there.data(), wanted.data(), there.size());
  expect(there == wanted, "bytes changed on the way from host to host");
  d.copy(a.data(), nullptr, 0);
}

void parts(Device& d) {
  DeviceBuffer a(d, 3 * page), b(d, 3 * page);
  auto wanted = numbered(3 * page, 2);
  a.put(wanted);
  d.copy(b.data() + 5, a.data() + page + 1, page + 77);
  std::vector<unsigned char> expected(3 * page);
  std::copy_n(wanted.begin() + page + 1, page + 77, expected.begin() + 5);
  expect(b.get<unsigned char>() == expected, "a copy between parts of memory went elsewhere");
  d.fill(b.data() + 100, std::byte{9}, 1);
  expected[100] = 9;
  expect(b.get<unsigned char>() == expected, "a fill of one byte went elsewhere");
}

void attach(Device& d) {
  std::vector<float> own(4096, 2.0F);
  DeviceBuffer sum(d, own.size() * sizeof(float));
  sum.put(std::vector<float>(own.size(), 1.0F));
  const auto attached = d.attach(own.data(), own.size() * sizeof(float));
  expect(attached->bytes() == own.size() * sizeof(float), "{} bytes are attached", attached->bytes());
  const void* const sources[] = {sum.data(), attached->data()};
  d.reduce(kernels::Reduction::sum, kernels::DType::f32, sources, attached->data(), own.size(), {});
  expect(own[0] == 3.0F && own.back() == 3.0F, "attached memory did not change: {} {}", own[0], own.back());
  expect_refused<std::invalid_argument>("null with bytes", [&] { d.attach(nullptr, 10); });
}

void export_memory(Device& d) {
  DeviceBuffer a(d, 3 * page);
  const auto wanted = numbered(3 * page, 3);
  a.put(wanted);
  const Exported file = d.export_memory(a.data(), a.bytes());
  expect(file.bytes() == a.bytes() && file.offset() % page == 0, "{} bytes at {}", file.bytes(), file.offset());
  void* const seen = mmap(nullptr, file.bytes(), PROT_READ, MAP_SHARED, file.fd(), static_cast<off_t>(file.offset()));
  expect(seen != MAP_FAILED, "the file cannot be mapped: {}", std::strerror(errno));
  const bool same = std::memcmp(seen, wanted.data(), wanted.size()) == 0;
  d.fill(a.data() + page, std::byte{77}, 1);
  const bool follows = static_cast<const unsigned char*>(seen)[page] == 77;
  munmap(seen, file.bytes());
  expect(same, "the file has other bytes");
  expect(follows, "the file is a copy");
  const Exported part = d.export_memory(a.data() + 2 * page, 100);
  expect(part.bytes() == 100 && part.offset() == file.offset() + 2 * page, "a part is {} bytes at {}", part.bytes(),
         part.offset());
  int elsewhere = 0;
  expect_refused<std::invalid_argument>("somebody else's memory", [&] { d.export_memory(&elsewhere, 4); });
}

void many_threads(Device& d) {
  const std::size_t before = d.memory().used;
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(16);
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 20; ++i) {
          DeviceBuffer a(d, static_cast<std::size_t>(1 + 1000 * t + i));
          const auto wanted = numbered(a.bytes(), t + i);
          a.put(wanted);
          if (a.get<unsigned char>() != wanted) wrong[static_cast<std::size_t>(t)] = "another thread's bytes";
        }
      } catch (const std::exception& e) {
        wrong[static_cast<std::size_t>(t)] = e.what();
      }
    });
  for (auto& t : threads) t.join();
  for (const std::string& w : wrong) expect(w.empty(), "with 16 threads: {}", w);
  expect(d.memory().used == before, "{} bytes are used; expected {}", d.memory().used, before);
}

const RegisteredCheck all[] = {
    RegisteredCheck({"memory", "memory is zero, begins a page, and no two pieces overlap", {}, memory}),
    RegisteredCheck({"release", "only what was allocated is released, once", {}, release}),
    RegisteredCheck({"out of memory", "the error says who holds what", {}, out_of_memory}),
    RegisteredCheck({"copies", "bytes arrive whichever way they are copied", {}, copies}),
    RegisteredCheck({"parts", "parts of memory are copied and filled, and nothing beside them", {}, parts}),
    RegisteredCheck({"attach", "the host's memory can be worked on", {}, attach}),
    RegisteredCheck({"export", "memory is a file that others can map", {Capability::export_memory}, export_memory}),
    RegisteredCheck({"threads", "16 threads use it at once", {}, many_threads}),
};

}  // namespace
}  // namespace trellis::device
