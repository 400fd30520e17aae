#include "train/data/megatron_index.h"

#include <fmt/format.h>

#include <cstring>

#include "text/refuse.h"

namespace trellis::train {
namespace {

// Bytes of each type code of the index; 0: not a type of tokens.
constexpr std::size_t widths[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
constexpr std::string_view mark{"MMIDIDX\0\0", 9};
constexpr std::size_t head = 9 + 8 + 1 + 8 + 8;
constexpr std::size_t bytes_of_sequence = 4 + 8, bytes_of_document = 8;

template <class T>
T word_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

MegatronIndex megatron_index(const std::string& name, std::string_view bytes, std::uint64_t data_bytes) {
  const auto expect = [&](bool right, const auto& what) {
    if (!right) text::refuse("{}: {}", name, what());
  };
  expect(bytes.size() >= head && bytes.starts_with(mark),
         [] { return std::string("expected an index that begins with MMIDIDX"); });
  const auto version = word_at<std::uint64_t>(bytes.data() + 9);
  const auto code = word_at<std::uint8_t>(bytes.data() + 17);
  const auto sequences = word_at<std::uint64_t>(bytes.data() + 18), ends = word_at<std::uint64_t>(bytes.data() + 26);
  expect(version == 1, [&] { return fmt::format("version {}: expected 1", version); });
  expect(code < std::size(widths) && widths[code] != 0,
         [&] { return fmt::format("type {}: expected one of whole numbers", code); });
  const std::size_t room = bytes.size() - head;
  expect(sequences <= room / bytes_of_sequence && ends <= (room - sequences * bytes_of_sequence) / bytes_of_document,
         [&] {
           return fmt::format("it was cut short: {} sequences and {} documents do not fit into {} bytes", sequences,
                              ends, bytes.size());
         });
  MegatronIndex index{.width = widths[code], .documents = {}};
  const char* const lengths = bytes.data() + head;
  const char* const pointers = lengths + 4 * sequences;
  const char* const documents = pointers + 8 * sequences;
  std::uint64_t sum = 0, document = 0;
  // Adds the documents that begin with sequence i.
  const auto begin_documents = [&](std::uint64_t i) {
    for (; document < ends; ++document) {
      const auto first = word_at<std::uint64_t>(documents + bytes_of_document * document);
      expect(first >= i && first <= sequences, [&] {
        return fmt::format("document {} begins with sequence {}: expected {} to {}", document, first, i, sequences);
      });
      if (first != i) return;
      index.documents.push_back(sum);
    }
  };
  for (std::uint64_t i = 0; i < sequences; ++i) {
    begin_documents(i);
    const auto at = word_at<std::uint64_t>(pointers + 8 * i);
    expect(at == sum * index.width, [&] {
      return fmt::format("sequence {} begins at byte {}: expected {}, the end of the one before", i, at,
                         sum * index.width);
    });
    sum += word_at<std::uint32_t>(lengths + 4 * i);
  }
  begin_documents(sequences);
  expect(ends == 0 || index.documents.front() == 0,
         [&] { return fmt::format("the first document begins with token {}: expected 0", index.documents.front()); });
  expect(sum * index.width == data_bytes, [&] {
    return fmt::format("{} tokens of {} bytes in sequences, and {} bytes of data", sum, index.width, data_bytes);
  });
  if (index.documents.empty()) index.documents.push_back(0);
  if (index.documents.back() != sum) index.documents.push_back(sum);
  return index;
}

}  // namespace trellis::train
