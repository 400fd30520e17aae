// Lengths beyond 2^31 and 2^32 elements, and tables whose last rows lie there. The arrays are that long in addresses
// alone: a few megabytes of memory appear in them again and again, so any machine can run this.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>

#include "kernels/check/row_kernel_trial.h"
#include "kernels/layers/embedding.h"
#include "kernels/layers/matmul.h"
#include "kernels/layers/rotary.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/dot.h"
#include "kernels/reduce/elementwise.h"
#include "kernels/reduce/reduce.h"
#include "kernels/types/convert.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRELLIS_SLOW_HERE GTEST_SKIP() << "billions of elements take too long under a sanitizer"
#else
#define TRELLIS_SLOW_HERE
#endif

namespace trellis::kernels {
namespace {

constexpr std::size_t past31 = (std::size_t{1} << 31) + 7, past32 = (std::size_t{1} << 32) + 7;

class Window {
 public:
  // An odd number of pages, so that an index that is wrong by a power of two does not find the right bytes.
  static constexpr std::size_t period = 1025 * 4096;

  enum class Use { all, some };

  // Use::all maps the pages in at once, which is faster than a fault for each.
  explicit Window(std::size_t bytes, Use use = Use::all) : bytes_((bytes + period - 1) / period * period) {
    const int file = memfd_create("window", 0);
    if (file < 0 || ftruncate(file, period) != 0) return;
    void* const place = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) return;
    start_ = static_cast<std::byte*>(place);
    whole_ = true;
    const int flags = MAP_SHARED | MAP_FIXED | (use == Use::all ? MAP_POPULATE : 0);
    for (std::size_t at = 0; at < bytes_; at += period)
      whole_ = whole_ && mmap(start_ + at, period, PROT_READ | PROT_WRITE, flags, file, 0) != MAP_FAILED;
    close(file);
  }
  ~Window() {
    if (start_ != nullptr) munmap(start_, bytes_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool whole() const { return whole_; }
  std::byte* start() const { return start_; }
  void fill(DType type, std::uint64_t seed) const {
    for (std::size_t i = 0; i < period / size_of(type); ++i) {
      const std::uint64_t word = random_word({seed, 4}, i);
      if (is_float(type))
        store(type, start_ + i * size_of(type), static_cast<double>(word >> 40) * 0x1p-24 + 1);
      else
        std::memcpy(start_ + i * size_of(type), &word, size_of(type));
    }
  }

 private:
  std::size_t bytes_;
  std::byte* start_ = nullptr;
  bool whole_ = false;
};

#define NEED(window) \
  if (!(window).whole()) GTEST_SKIP() << "this machine gives no " << #window << " of that many addresses"

// Compares the last period of a window that one thread has written with the same elements computed separately.
void expect_tail(const Window& written, DType type, std::size_t n,
                 const std::function<void(std::size_t, void*)>& tail) {
  const std::size_t from = n - Window::period / size_of(type);
  std::vector<std::byte> wanted(Window::period);
  tail(from, wanted.data());
  EXPECT_EQ(0, std::memcmp(written.start() + from * size_of(type), wanted.data(), wanted.size()));
}

TEST(Lengths, StochasticCastPast31Bits) {
  TRELLIS_SLOW_HERE;
  const Window src(past31 * 4), dst(past31 * 2);
  NEED(src);
  NEED(dst);
  src.fill(DType::f32, 1);
  const Random random{.seed = 3, .first = past32};
  cast(DType::f32, src.start(), DType::bf16, dst.start(), past31, {Rounding::stochastic, random});
  expect_tail(dst, DType::bf16, past31, [&](std::size_t from, void* to) {
    cast(DType::f32, src.start() + from * 4, DType::bf16, to, past31 - from,
         {Rounding::stochastic, {.seed = 3, .first = past32 + from}});
  });
}

TEST(Lengths, ReducePast32Bits) {
  TRELLIS_SLOW_HERE;
  const Window a(past32), b(past32), dst(past32);
  NEED(a);
  NEED(b);
  NEED(dst);
  a.fill(DType::i8, 1), b.fill(DType::i8, 2);
  const void* const sources[] = {a.start(), b.start()};
  reduce(Reduction::sum, DType::i8, sources, dst.start(), past32);
  expect_tail(dst, DType::i8, past32, [&](std::size_t from, void* to) {
    const void* const rest[] = {a.start() + from, b.start() + from};
    reduce(Reduction::sum, DType::i8, rest, to, past32 - from);
  });
}

TEST(Lengths, FillAndDotPast31Bits) {
  TRELLIS_SLOW_HERE;
  const Window x(past31 * 2), y(past31 * 2);
  NEED(x);
  NEED(y);
  fill(DType::bf16, x.start(), past31, 3, 0);
  fill(DType::bf16, y.start(), past31, 0.5, 0);
  EXPECT_EQ(dot(DType::bf16, x.start(), y.start(), past31, 0), 1.5 * static_cast<double>(past31));
}

// Every body of every row kernel makes the last rows (or columns, if it works by columns) of tables of more than 2^31
// elements.
TEST(Lengths, RowsFarBeyond31Bits) {
  constexpr std::size_t rows = (std::size_t{1} << 21) + 3, columns = 1025, few = 3, wide = (std::size_t{1} << 30) + 5;
  for (const auto& [name, kernel] : row_kernels()) {
    const std::size_t down = kernel.by_columns ? few : rows, across = kernel.by_columns ? wide : columns;
    const std::size_t length = kernel.by_columns ? across : down;
    const auto elements = [&](const RowOperandSpec& o) {
      return o.extent == OperandShape::table ? down * across : o.extent == OperandShape::row ? down : across;
    };
    std::vector<std::unique_ptr<Window>> reads, writes;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const RowOperandSpec& o : kernel.reads) {
      reads.push_back(std::make_unique<Window>(elements(o) * size_of(o.type), Window::Use::some));
      NEED(*reads.back());
      if (is_float(o.type)) reads.back()->fill(o.type, reads.size());  // labels are 0
      from.push_back(reads.back()->start());
    }
    for (const RowOperandSpec& o : kernel.writes) {
      writes.push_back(std::make_unique<Window>(elements(o) * size_of(o.type), Window::Use::some));
      NEED(*writes.back());
      to.push_back(writes.back()->start());
    }
    // The ends of the written operands after a body has made the last two rows or columns.
    const auto after = [&](RowBody body) {
      body({.rows = down,
            .columns = across,
            .from = length - 2,
            .to = length,
            .writes = to.data(),
            .reads = from.data(),
            .settings = kernel.settings});
      std::vector<std::vector<std::byte>> ends;
      for (std::size_t w = 0; w < to.size(); ++w) {
        const RowOperandSpec& o = kernel.writes[w];
        const std::size_t made = o.extent == OperandShape::table ? 2 * across : 2;
        std::byte* const end = static_cast<std::byte*>(to[w]) + elements(o) * size_of(o.type);
        ends.emplace_back(end - made * size_of(o.type), end);
        std::memset(end - made * size_of(o.type), 0x77, made * size_of(o.type));
      }
      return ends;
    };
    const auto expected = after(kernel.truth);
    for (const RowBody twin : kernel.twins)
      if (twin != nullptr && (twin == kernel.chosen() || twin == kernel.twins[0])) {
        EXPECT_TRUE(expected == after(twin)) << name;
      }
    std::vector<std::byte> untouched(expected[0].size(), std::byte{0x77});
    EXPECT_NE(expected[0], untouched) << name;
  }
}

TEST(Lengths, EmbeddingAndRotaryFarBeyond31Bits) {
  constexpr std::size_t entries = (std::size_t{1} << 22) + 3, width = 1025;
  const Window table(entries * width * 2, Window::Use::some);
  NEED(table);
  table.fill(DType::bf16, 1);
  const std::vector<std::int32_t> ids = {static_cast<std::int32_t>(entries - 1)};
  std::vector<std::byte> row(width * 2);
  embedding({DType::bf16, entries, width}, table.start(), ids.data(), row.data(), 1);
  EXPECT_EQ(0, std::memcmp(row.data(), table.start() + (entries - 1) * width * 2, row.size()));

  const RotaryShape shape{.rows = 2, .heads = 1, .head_size = 4, .turned = 4, .stride = past32};
  const std::vector<float> cosines = {0, 0, 0, 0}, sines = {1, 1, 1, 1};
  const Window x((past32 + 4) * 2, Window::Use::some), y((past32 + 4) * 2, Window::Use::some);
  NEED(x);
  NEED(y);
  x.fill(DType::bf16, 2);
  rotary(DType::bf16, x.start(), y.start(), shape, {cosines.data(), sines.data(), 2});
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(load(DType::bf16, y.start() + (past32 + i) * 2),
              (i < 2 ? -1 : 1) * load(DType::bf16, x.start() + (past32 + (i + 2) % 4) * 2));
}

TEST(Lengths, MatmulOfRowsFarApart) {
  for (const auto& [from, size] : {std::pair(DType::f32, std::size_t{4}), {DType::bf16, std::size_t{2}}})
    for (const bool transposed : {false, true}) {
      const Window a((past31 * 2 + 3) * size, Window::Use::some), c((past31 * 2 + 3) * 4, Window::Use::some);
      NEED(a);
      NEED(c);
      a.fill(from, 1);
      const std::vector<std::byte> ones = [&] {
        std::vector<std::byte> all(9 * size);
        for (std::size_t i = 0; i < 9; ++i) store(from, &all[i * size], i % 4 == 0 ? 1 : 0);
        return all;
      }();
      matmul({3, 3, 3}, from, {a.start(), past31, transposed}, {ones.data(), 3}, DType::f32, c.start(), past31);
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j)
          EXPECT_EQ(load(DType::f32, c.start() + (i * past31 + j) * 4),
                    load(from, a.start() + (transposed ? j * past31 + i : i * past31 + j) * size));
    }
}

}  // namespace
}  // namespace trellis::kernels
