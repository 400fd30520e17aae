// The stand-in's tensors: what callers may do, and what is refused.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using nrt::Status;

TEST(Nrt, StartsOnceAndTellsBeforeAndAfter) {
  use_standin();
  const nrt::NrtLibrary l(TRELLIS_STANDIN);
  nrt::Tensor* t = nullptr;
  const Status before = l.nrt_tensor_allocate(nrt::TensorPlacement::device, 0, 10, nullptr, &t);
  EXPECT_TRUE(before == Status::uninitialized || before == Status::closed);
  std::uint32_t cores = 0;
  EXPECT_EQ(l.nrt_get_total_vnc_count(&cores), Status::success) << "legal before nrt_init";
  EXPECT_EQ(cores, 64u);
  EXPECT_EQ(l.nrt_init(static_cast<nrt::Framework>(77), "", ""), Status::invalid);
  EXPECT_EQ(l.nrt_init(nrt::Framework::pytorch, nullptr, nullptr), Status::success);
  EXPECT_EQ(l.nrt_init(nrt::Framework::pytorch, nullptr, nullptr), Status::invalid) << "a second time";
  EXPECT_EQ(l.nrt_tensor_allocate(nrt::TensorPlacement::device, 0, 10, nullptr, &t), Status::success);
  l.nrt_close();
  l.nrt_close();
  char byte = 0;
  EXPECT_EQ(l.nrt_tensor_read(t, &byte, 0, 1), Status::closed);
  EXPECT_EQ(l.nrt_init(nrt::Framework::none, "", ""), Status::success) << "again";
  EXPECT_EQ(l.nrt_tensor_read(t, &byte, 0, 1), Status::invalid) << "a handle of the time before";
  l.nrt_close();
}

TEST(Nrt, TensorsKeepWhatIsWrittenAndRefuseWhatGoesPastTheirEnd) {
  const Standin n;
  for (const int core : {0, 63, -1}) {
    nrt::Tensor* t = n.tensor(core, 1000, "weights");
    ASSERT_NE(t, nullptr) << n.why();
    EXPECT_EQ(n->nrt_tensor_get_size(t), 1000u);
    EXPECT_EQ(n->nrt_tensor_write(t, "seven b", 993, 7), Status::success);
    EXPECT_EQ(n->nrt_tensor_write(t, "eight by", 993, 8), Status::invalid);
    EXPECT_EQ(n->nrt_tensor_write(t, "x", SIZE_MAX, 2), Status::invalid) << "the sum overflows";
    char back[8] = "";
    EXPECT_EQ(n->nrt_tensor_read(t, back, 993, 7), Status::success);
    EXPECT_STREQ(back, "seven b");
    EXPECT_EQ(n->nrt_tensor_memset(t, 10, 'z', 2), Status::success);
    EXPECT_EQ(static_cast<char*>(n->nrt_tensor_get_va(t))[11], 'z') << "memory is mapped";
    nrt::Tensor* slice = nullptr;
    EXPECT_EQ(n->nrt_tensor_allocate_slice(t, 990, 11, "tail", &slice), Status::invalid);
    EXPECT_EQ(n->nrt_tensor_allocate_slice(t, 990, 10, "tail", &slice), Status::success);
    n->nrt_tensor_free(&t);
    EXPECT_EQ(t, nullptr);
    EXPECT_EQ(n->nrt_tensor_read(slice, back, 3, 7), Status::success) << "a slice keeps the storage";
    EXPECT_STREQ(back, "seven b");
    n->nrt_tensor_free(&slice);
  }
}

TEST(Nrt, FreedAndForeignHandlesAreRefused) {
  const Standin n;
  nrt::Tensor* t = n.tensor(0, 100);
  nrt::Tensor* const freed = t;
  n->nrt_tensor_free(&t);
  n->nrt_tensor_free(&t);
  n->nrt_tensor_free(nullptr);
  char byte = 0;
  int elsewhere = 0;
  for (nrt::Tensor* bad : {freed, static_cast<nrt::Tensor*>(nullptr), reinterpret_cast<nrt::Tensor*>(&elsewhere)}) {
    EXPECT_EQ(n->nrt_tensor_read(bad, &byte, 0, 1), Status::invalid);
    EXPECT_EQ(n->nrt_tensor_get_size(bad), 0u);
    EXPECT_EQ(n->nrt_tensor_get_va(bad), nullptr);
  }
  EXPECT_NE(n.why().find("never given out"), std::string::npos) << n.why();
  EXPECT_EQ(n->nrt_tensor_allocate(nrt::TensorPlacement::virtual_memory, 0, 10, nullptr, &t), Status::invalid);
  EXPECT_EQ(n->nrt_tensor_allocate(nrt::TensorPlacement::device, 64, 10, nullptr, &t), Status::invalid)
      << "no such core";
  EXPECT_EQ(n->nrt_tensor_allocate(nrt::TensorPlacement::device, 0, 0, nullptr, &t), Status::invalid);
  EXPECT_EQ(n->nrt_tensor_allocate(nrt::TensorPlacement::device, 0, std::size_t{25} << 30, "huge", &t),
            Status::resource);
  EXPECT_NE(n.why().find("25769803776"), std::string::npos) << "a core has 24 GiB: " << n.why();
}

TEST(Nrt, AnAddressIsThatOfTheTensorThatIsThereNow) {
  const Standin n;
  nrt::Tensor *first = n.tensor(0, 4096), *second = n.tensor(0, 4096);
  void* const va = n->nrt_tensor_get_va(first);
  n->nrt_tensor_free(&first);
  n->nrt_tensor_free(&second);
  nrt::Tensor* whole = n.tensor(0, 8192);
  ASSERT_EQ(n->nrt_tensor_get_va(whole), va);
  EXPECT_EQ(n->nrt_memcpy_to_device(static_cast<char*>(va) + 5000, "seven b", 7), Status::success) << n.why();
  char back[8] = "";
  n->nrt_tensor_read(whole, back, 5000, 7);
  EXPECT_STREQ(back, "seven b");
  n->nrt_tensor_free(&whole);
  EXPECT_EQ(n->nrt_memcpy_to_device(static_cast<char*>(va) + 5000, "seven b", 7), Status::invalid);
}

TEST(Nrt, CopiesStayOnOneCoreAndMayOverlap) {
  const Standin n;
  nrt::Tensor *a = n.tensor(0, 100), *b = n.tensor(0, 100), *other = n.tensor(1, 100), *host = n.tensor(-1, 100);
  n->nrt_tensor_write(a, "0123456789", 0, 10);
  EXPECT_EQ(n->nrt_tensor_copy(a, 2, b, 5, 8), Status::success);
  EXPECT_EQ(n->nrt_tensor_copy(a, 0, other, 0, 10), Status::invalid);
  EXPECT_EQ(n->nrt_tensor_copy(a, 0, host, 0, 10), Status::success);
  EXPECT_EQ(n->nrt_tensor_copy(host, 0, other, 0, 10), Status::success);
  EXPECT_EQ(n->nrt_tensor_copy(a, 0, a, 3, 7), Status::success);
  char seen[11] = "";
  n->nrt_tensor_read(a, seen, 0, 10);
  EXPECT_STREQ(seen, "0120123456");
  n->nrt_tensor_read(b, seen, 5, 8);
  EXPECT_EQ(std::memcmp(seen, "23456789", 8), 0);
  n->nrt_tensor_read(other, seen, 0, 10);
  EXPECT_STREQ(seen, "0123456789");
  for (nrt::Tensor* t : {a, b, other, host}) n->nrt_tensor_free(&t);
}

TEST(Nrt, BatchesAreLookedAtBeforeAnythingMoves) {
  const Standin n;
  nrt::Tensor *a = n.tensor(0, 10), *b = n.tensor(2, 10);
  char one[] = "one", two[] = "two";
  nrt::BatchOp ops[] = {{0, 3, one}, {7, 3, two}};
  nrt::TensorBatch batches[] = {{a, ops, 2}, {b, ops, 1}};
  EXPECT_EQ(n->nrt_tensor_write_batch(batches, 2, false), Status::success);
  char back[3][4] = {};
  nrt::BatchOp reads[] = {{0, 3, back[0]}, {7, 3, back[1]}}, last = {0, 3, back[2]};
  nrt::TensorBatch all[] = {{a, reads, 2}, {b, &last, 1}};
  EXPECT_EQ(n->nrt_tensor_read_batch(all, 2, true), Status::success);
  EXPECT_STREQ(back[0], "one");
  EXPECT_STREQ(back[1], "two");
  EXPECT_STREQ(back[2], "one");
  ops[0].buffer = two;
  ops[1].offset = 8;
  EXPECT_EQ(n->nrt_tensor_write_batch(batches, 2, false), Status::invalid);
  n->nrt_tensor_read_batch(all, 2, false);
  EXPECT_STREQ(back[0], "one") << "the first operation of a wrong batch was done";
  EXPECT_EQ(n->nrt_tensor_read_batch(nullptr, 1, false), Status::invalid);
}

TEST(Nrt, AttachedMemoryIsTheCallers) {
  const Standin n;
  nrt::Tensor* t = nullptr;
  ASSERT_EQ(n->nrt_tensor_allocate_empty("own", &t), Status::success);
  char byte = 0;
  EXPECT_EQ(n->nrt_tensor_read(t, &byte, 0, 1), Status::invalid) << "it has no storage yet";
  char own[20] = "";
  EXPECT_EQ(n->nrt_tensor_attach_buffer(t, nullptr, 20), Status::invalid);
  EXPECT_EQ(n->nrt_tensor_attach_buffer(t, own, sizeof own), Status::success);
  EXPECT_EQ(n->nrt_tensor_get_va(t), own);
  n->nrt_tensor_write(t, "hello", 0, 5);
  EXPECT_STREQ(own, "hello");
  n->nrt_tensor_free(&t);
}

TEST(Nrt, AFileOfATensorIsTheTensor) {
  const Standin n;
  nrt::Tensor* t = n.tensor(5, 10'000);
  n->nrt_tensor_write(t, "before", 5000, 6);
  const auto va = reinterpret_cast<std::uint64_t>(n->nrt_tensor_get_va(t));
  int fd = -1;
  ASSERT_EQ(n->nrt_get_dmabuf_fd(va, 10'000, &fd), Status::success) << n.why();
  auto* const seen = static_cast<char*>(mmap(nullptr, 10'000, PROT_READ, MAP_SHARED, fd, 0));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(std::memcmp(seen + 5000, "before", 6), 0);
  n->nrt_tensor_write(t, "after", 0, 5);
  EXPECT_EQ(std::memcmp(seen, "after", 5), 0);
  munmap(seen, 10'000);
  close(fd);
  EXPECT_EQ(n->nrt_get_dmabuf_fd(va + 4096, 100, &fd), Status::invalid);
  EXPECT_EQ(n->nrt_get_dmabuf_fd(va, 20'000, &fd), Status::invalid);
  std::uint64_t offset = 0;
  EXPECT_EQ(n->nrt_get_dmabuf_fd_v2(va + 4096, 100, &fd, &offset), Status::success);
  EXPECT_EQ(offset, 4096u);
  close(fd);
  EXPECT_EQ(n->nrt_get_dmabuf_fd(16, 10, &fd), Status::invalid);
  n->nrt_tensor_free(&t);
  nrt::Tensor* again = n.tensor(5, 10'000);
  char zero = 1;
  n->nrt_tensor_read(again, &zero, 5000, 1);
  EXPECT_EQ(zero, 0) << "memory that had a file of its own is as new again";
  n->nrt_tensor_free(&again);
}

TEST(Nrt, TheMachineIsTheOneOfTheEnvironment) {
  const Standin n("trn1.32xlarge");
  ASSERT_EQ(n.started(), Status::success);
  nrt::InstanceInfo info{};
  EXPECT_EQ(n->nrt_get_instance_info(&info, sizeof info), Status::success);
  EXPECT_EQ(info.family, nrt::InstanceFamily::trn1);
  EXPECT_EQ(info.size, nrt::InstanceSize::xl32);
  EXPECT_EQ(n->nrt_get_instance_info(nullptr, sizeof info), Status::invalid);
  std::uint32_t cores = 0, chips[16] = {}, count = 16;
  n->nrt_get_total_nc_count(&cores);
  EXPECT_EQ(cores, 32u);
  EXPECT_EQ(n->nrt_host_device_id_rid_map_get(&count, chips), Status::success);
  EXPECT_EQ(count, 16u);
  nrt::MemoryStats stats{};
  std::size_t written = 0;
  nrt::Tensor* t = n.tensor(3, 1 << 20);
  EXPECT_EQ(n->nrt_get_vnc_memory_stats(3, &stats, sizeof stats, &written), Status::success);
  EXPECT_EQ(written, sizeof stats);
  EXPECT_EQ(stats.bytes_used, std::size_t{1} << 20);
  EXPECT_EQ(stats.bytes_limit, std::size_t{16} << 30);
  char bdf[32] = "";
  std::size_t length = 4;
  EXPECT_EQ(n->nrt_get_attached_efa_bdf(n->nrt_tensor_get_va(t), bdf, &length), Status::resource);
  length = sizeof bdf;
  EXPECT_EQ(n->nrt_get_attached_efa_bdf(n->nrt_tensor_get_va(t), bdf, &length), Status::success) << n.why();
  EXPECT_EQ(length, std::strlen(bdf));
  n->nrt_tensor_free(&t);
}

}  // namespace
}  // namespace trellis::device
