// Which gradients are exchanged together. Pure functions of their sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trellis::train {

using Bucket = std::vector<std::size_t>;  // indices of tensors

// all_reduce: a tensor that would overflow the bucket flushes it first; one of the cap or more goes alone.
std::vector<Bucket> all_reduce_buckets(std::span<const std::size_t> bytes, std::size_t cap);

// ZeRO-1's reduce_scatter: tensors are collected until they pass the cap. A tensor that alone passes the cap goes
// together with the pending ones if these are under half of the cap and all at most twice the cap; else the pending
// ones go first.
std::vector<Bucket> reduce_scatter_buckets(std::span<const std::size_t> bytes, std::size_t cap);

}  // namespace trellis::train
