// A small program of a NeuronCore, in its container: out = a + b, over 16,384 numbers in f32.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace trellis::device {

inline constexpr std::size_t sample_numbers = 16384;

inline constexpr std::string_view sample_program = R"(program sum_of_two cores=1
hbm a f32 bytes=65536 input
hbm b f32 bytes=65536 input
hbm out f32 bytes=65536 output
sbuf left f32 core=0 partitions=0+128 bytes=0+512
sbuf right f32 core=0 partitions=0+128 bytes=512+512
sbuf sum f32 core=0 partitions=0+128 bytes=1024+512
semaphore loaded
semaphore added
dma_copy sync ring=4 left[0+128 @0 128x1] <- a[0+128 @0 128x1 /512]
dma_copy sync ring=4 right[0+128 @0 128x1] <- b[0+128 @0 128x1 /512] signal loaded+1
tensor_tensor vector sum[0+128 @0 128x1] <- left[0+128 @0 128x1], right[0+128 @0 128x1] op=add wait loaded>=1 signal added+1
dma_copy gpsimd ring=3 out[0+128 @0 128x1 /512] <- sum[0+128 @0 128x1] wait added>=1
)";

std::vector<std::byte> sample_container();
// A well-formed NEFF such as a compiler makes: it has the usual files, but no program of this project's.
std::vector<std::byte> foreign_container();

}  // namespace trellis::device
