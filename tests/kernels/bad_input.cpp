// For every function: an error in a call is reported with the operand's name; an unusual but right call works.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/registry.h"
#include "kernels/layers/rows.h"
#include "kernels/types/convert.h"
#include "tests/kernels/calls.h"
#include "tests/why.h"

namespace trellis::kernels {
namespace {

// An operand in memory of its own. It begins a byte past a multiple of 64, or four bytes if its type must be aligned.
class Place {
 public:
  explicit Place(const Piece& p) : piece_(p), store_(p.bytes() + 128) {
    const auto at = reinterpret_cast<std::uintptr_t>(store_.data());
    start_ = store_.data() + (64 - at % 64) % 64 + (p.typed ? 4 : 1);
    for (std::size_t i = 0; i < p.count; ++i) store(p.type, start_ + i * size_of(p.type), static_cast<double>(i % 3));
  }
  void* start() const { return start_; }
  std::vector<std::byte> bytes() const { return {start_, start_ + piece_.bytes()}; }

 private:
  Piece piece_;
  std::vector<std::byte> store_;
  std::byte* start_;
};

struct Places {
  std::vector<Place> all;
  std::vector<void*> at;

  explicit Places(const Call& call) {
    all.reserve(call.pieces.size());
    for (const Piece& p : call.pieces) at.push_back(all.emplace_back(p).start());
  }
};

std::string complaint(const Call& call, const std::vector<void*>& at, std::size_t n = call_elements, int threads = 1) {
  return why([&] { call.run(at, n, threads); });
}

testing::AssertionResult says(const std::string& complaint, const std::string& words) {
  if (complaint.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << words << "' is not in '" << complaint << "'";
}

// The contents of the written operands after a call; two in the same memory have the same.
std::vector<std::vector<std::byte>> results(const Call& call, const std::vector<void*>& at) {
  std::vector<std::vector<std::byte>> all;
  for (std::size_t i = 0; i < at.size(); ++i)
    if (call.pieces[i].written) {
      const auto* from = static_cast<const std::byte*>(at[i]);
      all.emplace_back(from, from + call.pieces[i].bytes());
    }
  return all;
}

TEST(BadInput, EveryFamilyOfKernelsIsCalledHere) {
  std::set<std::string> called;
  for (const Call& call : calls()) called.insert(call.families.begin(), call.families.end());
  const auto check = [&](const std::string& name) {
    const std::string family = name.substr(0, name.find('.'));
    // Kernels that only measure the limits of speed, and those that copy memory, have no function with checks.
    EXPECT_TRUE(family == "limit" || family == "copy" || called.contains(family)) << name;
  };
  for (const auto& [name, kernel] : kernels()) check(name);
  for (const auto& [name, kernel] : row_kernels()) check(name);
}

TEST(BadInput, NothingIsFine) {
  for (const Call& call : calls()) {
    const std::vector<void*> nowhere(call.pieces.size(), nullptr);
    Places some(call);
    EXPECT_EQ(complaint(call, some.at, 0), "") << call.name;
    // embedding_gradient writes its table even if no row adds to it, so it needs the pointer.
    EXPECT_EQ(complaint(call, nowhere, 0),
              call.name == "embedding_gradient" ? "embedding_gradient: dtable is null and 36 bytes long" : "")
        << call.name;
  }
}

TEST(BadInput, NullIsNamed) {
  for (const Call& call : calls())
    for (std::size_t i = 0; i < call.pieces.size(); ++i) {
      Places p(call);
      p.at[i] = nullptr;
      const std::string said = complaint(call, p.at);
      EXPECT_TRUE(call.pieces[i].optional ? testing::AssertionResult(said.empty())
                                          : says(said, call.pieces[i].name + " is null"))
          << call.name << ": " << said;
    }
}

TEST(BadInput, WhatHasATypeMustBeAligned) {
  for (const Call& call : calls())
    for (std::size_t i = 0; i < call.pieces.size(); ++i) {
      if (!call.pieces[i].typed) continue;
      Places p(call);
      p.at[i] = static_cast<std::byte*>(p.at[i]) + 2;
      EXPECT_TRUE(says(complaint(call, p.at), call.pieces[i].name + " at ")) << call.name;
      EXPECT_TRUE(says(complaint(call, p.at), "not at a multiple of 4 bytes")) << call.name;
    }
}

// Puts each written operand beside each other operand: overlapping by four bytes on either side, then just beside it.
TEST(BadInput, OverlapIsNamedAndNeighboursAreNot) {
  for (const Call& call : calls())
    for (std::size_t w = 0; w < call.pieces.size(); ++w)
      for (std::size_t o = 0; o < call.pieces.size(); ++o) {
        const Piece &written = call.pieces[w], &other = call.pieces[o];
        if (!written.written || o == w) continue;
        const std::size_t space = written.bytes() + 2 * other.bytes() + 64;
        std::vector<std::uint64_t> memory(space / 8 + 1);
        const auto try_at = [&](std::ptrdiff_t distance) {
          Places p(call);
          auto* const start = reinterpret_cast<std::byte*>(memory.data()) + (other.bytes() + 7) / 4 * 4;
          p.at[w] = start;
          std::memcpy(start + distance, p.at[o], other.bytes());
          p.at[o] = start + distance;
          return complaint(call, p.at);
        };
        const auto after = static_cast<std::ptrdiff_t>(written.bytes()),
                   before = -static_cast<std::ptrdiff_t>(other.bytes());
        const std::ptrdiff_t step = written.typed || other.typed ? 4 : 1;
        for (const std::ptrdiff_t near : {(after - 1) / step * step, (before + 1) / step * step}) {
          if (near == 0 && written.bytes() == other.bytes()) continue;
          EXPECT_TRUE(says(try_at(near), "overlaps")) << call.name << ": " << written.name << " and " << other.name;
          EXPECT_TRUE(says(try_at(near), written.name) && says(try_at(near), other.name)) << call.name;
        }
        for (const std::ptrdiff_t beside : {after, before})
          if (beside % step == 0) {
            EXPECT_EQ(try_at(beside), "") << call.name << ": " << written.name << " and " << other.name;
          }
      }
}

TEST(BadInput, InPlaceIsRefusedOrGivesTheSameBits) {
  for (const Call& call : calls())
    for (std::size_t w = 0; w < call.pieces.size(); ++w)
      for (std::size_t r = 0; r < call.pieces.size(); ++r) {
        if (!call.pieces[w].written || r == w || call.pieces[w].bytes() != call.pieces[r].bytes()) continue;
        const std::pair<int, int> both(static_cast<int>(w), static_cast<int>(r));
        const bool allowed = std::find(call.in_place.begin(), call.in_place.end(), both) != call.in_place.end();
        Places apart(call), together(call);
        together.at[w] = together.at[r];
        const std::string said = complaint(call, together.at);
        if (!allowed) {
          // If no header speaks of a written and a read array that overlap, either outcome is right.
          EXPECT_TRUE(!call.pieces[r].written || says(said, "overlaps")) << call.name << " " << w << " " << r;
          continue;
        }
        EXPECT_EQ(said, "") << call.name << " " << w << " " << r;
        call.run(apart.at, call_elements, 1);
        EXPECT_EQ(results(call, apart.at), results(call, together.at)) << call.name << " " << w << " " << r;
      }
}

TEST(BadInput, ThreadsAreCountedAndAnyNumberGivesTheSameBits) {
  for (const Call& call : calls()) {
    if (!call.threaded) continue;
    Places one(call);
    for (const int bad : {-1, 1025, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()})
      EXPECT_TRUE(says(complaint(call, one.at, call_elements, bad), std::to_string(bad) + " threads")) << call.name;
    call.run(one.at, call_elements, 1);
    for (const int threads : {0, 2, 5}) {
      Places many(call);
      call.run(many.at, call_elements, threads);
      EXPECT_EQ(results(call, one.at), results(call, many.at)) << call.name << " " << threads;
    }
  }
}

TEST(BadInput, MoreThanMemoryHoldsIsSaid) {
  for (const Call& call : calls()) {
    Places p(call);
    for (const std::size_t n :
         {~std::size_t{0} / 32 * 32, std::size_t{1} << 63, std::size_t{1} << 62, std::size_t{1} << 61}) {
      const std::string said = complaint(call, p.at, n);
      EXPECT_TRUE(said.find("memory can hold") != std::string::npos || said.find("can't be") != std::string::npos ||
                  said.find("pass the last position") != std::string::npos ||
                  said.find("overlaps") != std::string::npos)
          << call.name << " " << n << ": " << said;
    }
  }
}

}  // namespace
}  // namespace trellis::kernels
