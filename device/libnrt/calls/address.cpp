// Calls about addresses in tensors: physical addresses, file descriptors of the memory, windows of cores, the nearest
// network interface, and copies to an address.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device/libnrt/exports.h"
#include "device/topology.h"

namespace trellis::device::nrt {
namespace {

std::shared_ptr<Storage> expect_storage(Runtime& r, const void* va) {
  expect_given(va, "the address");
  auto storage = r.storage_at(va);
  if (!storage) refuse(Status::invalid, "{} is not in a tensor on a device", va);
  return storage;
}

// Finds the tensor memory that holds the range, and sets *fd to a new descriptor of the file behind it. Returns the
// range's offset in that file.
std::uint64_t file_of(Runtime& r, std::uint64_t va, std::uint64_t size, int* fd) {
  expect_given(fd, "the descriptor's place");
  *fd = -1;
  const auto storage = expect_storage(r, reinterpret_cast<const void*>(va));
  const std::uint64_t offset = va - reinterpret_cast<std::uint64_t>(storage->data());
  if (size == 0 || size > storage->bytes() - offset)
    refuse(Status::invalid, "{} bytes from byte {} of a tensor of {}", size, offset, storage->bytes());
  *fd = fcntl(storage->file(), F_DUPFD_CLOEXEC, 0);
  if (*fd < 0) refuse(Status::resource, "no descriptor is left: {}", std::strerror(errno));
  return offset;
}

}  // namespace

// Physical addresses count from the start of the core's window: the chip's HBM as this core sees it.
Status nrt_tensor_get_device_allocation_info(const Tensor* tensor, AllocationInfo* out) {
  return call("nrt_tensor_get_device_allocation_info", [&](Runtime& r) {
    const auto p = r.tensors.get(tensor)->place();
    expect_given(out, "the structure");
    if (p.storage->vnc() < 0) refuse(Status::invalid, "the tensor is in memory of the host");
    const Device& device = *p.storage->device();
    const Topology& t = device.topology();
    *out = {device.find(p.data(), 1).offset, (p.storage->bytes() + 4095) / 4096 * 4096, t.core % t.cores_of_chip()};
  });
}

Status nrt_get_dmabuf_fd(std::uint64_t va, std::uint64_t size, int* fd) {
  return call("nrt_get_dmabuf_fd", [&](Runtime& r) {
    if (file_of(r, va, size, fd) == 0) return;
    close(std::exchange(*fd, -1));
    refuse(Status::invalid, "a range that begins within a tensor; nrt_get_dmabuf_fd_v2 tells its offset");
  });
}

Status nrt_get_dmabuf_fd_v2(std::uint64_t va, std::uint64_t size, int* fd, std::uint64_t* offset) {
  return call("nrt_get_dmabuf_fd_v2", [&](Runtime& r) {
    expect_given(offset, "the offset's place");
    *offset = file_of(r, va, size, fd);
  });
}

// Gives the window of one core, as no window covers a whole HBM. `hbm` counts the visible cores of the chip.
Status nrt_get_hbm_mmap_va(int device, int hbm, void** va, std::size_t* size) {
  return call("nrt_get_hbm_mmap_va", [&](Runtime& r) {
    expect_given(va, "the address's place");
    expect_given(size, "the size's place");
    const Topology t = r.core(0)->topology();
    if (device < 0 || device >= t.chips) refuse(Status::invalid, "device {}: expected 0 to {}", device, t.chips - 1);
    if (hbm < 0) refuse(Status::invalid, "HBM {}: expected one from 0 on", hbm);
    for (int vnc = 0, seen = 0; vnc < r.cores(); ++vnc) {
      const auto core = r.core(vnc);
      if (core->topology().chip_of_core() != device || seen++ != hbm) continue;
      *va = core->window().base;
      *size = static_cast<std::size_t>(core->topology().memory_bytes);
      return;
    }
    refuse(Status::invalid_handle, "device {} has no HBM {} that this process may use", device, hbm);
  });
}

Status nrt_get_attached_efa_bdf(const void* va, char* bdf, std::size_t* length) {
  return call("nrt_get_attached_efa_bdf", [&](Runtime& r) {
    expect_given(length, "the length");
    const Topology& t = expect_storage(r, va)->device()->topology();
    if (t.nics.empty()) refuse(Status::failure, "a {} has no network interface", t.machine);
    int nearest = 0;
    for (std::size_t i = 0; i < t.nics.size(); ++i)
      if (t.nics[i].chip <= t.chip_of_core()) nearest = static_cast<int>(i);
    const std::string text = fmt::format("0000:{:02x}:00.0", 0x10 + nearest % 0xE0);
    if (*length < text.size() + 1) {
      const std::size_t room = std::exchange(*length, text.size());
      refuse(Status::resource, "room for {} characters; expected {}", room, text.size() + 1);
    }
    expect_given(bdf, "the text's place");
    std::memcpy(bdf, text.c_str(), text.size() + 1);
    *length = text.size();
  });
}

Status nrt_memcpy_to_device(void* to, const void* from, std::size_t size) {
  return call("nrt_memcpy_to_device", [&](Runtime& r) {
    const auto storage = expect_storage(r, to);
    if (size != 0) expect_given(from, "the source");
    const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(to) - storage->data());
    if (size > storage->bytes() - offset)
      refuse(Status::invalid, "{} bytes from byte {} of a tensor go past its {} bytes", size, offset, storage->bytes());
    copy_from_host({storage, offset, size}, from);
  });
}

}  // namespace trellis::device::nrt
