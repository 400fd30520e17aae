// CRC-32C (Castagnoli), as iSCSI, ext4 and TensorFlow's records have it: finds every change of one bit, and of up to 32
// adjacent ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trellis::kernels {

// `before`: the checksum of the bytes that come before these.
std::uint32_t crc32c(std::span<const std::byte>, std::uint32_t before = 0);

std::uint32_t crc32c_plainly(std::span<const std::byte>, std::uint32_t before = 0);  // without the CPU's instruction

}  // namespace trellis::kernels
