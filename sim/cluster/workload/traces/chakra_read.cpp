// Parses the protobuf wire format: keys and values, nested messages. Only the fields that a workload needs are kept.
#include <fmt/format.h>

#include <bit>

#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/traces/chakra_frames.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

class Fields {
 public:
  Fields(const ChakraFile& file, std::size_t begin, std::size_t end) : file_(&file), at_(begin), end_(end) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ == end_; }

  template <class... T>
  [[noreturn]] void refuse(std::size_t at, fmt::format_string<T...> format, T&&... values) const {
    text::refuse("{}, byte {}: {}", file_->name, at, fmt::format(format, std::forward<T>(values)...));
  }

  // Advances to the next field; false at the end.
  bool next() {
    if (done()) return false;
    start_ = at_;
    const std::uint64_t key = varint();
    field_ = key >> 3;
    wire_ = static_cast<Wire>(key & 7);
    if (field_ == 0) refuse(start_, "field number 0");
    switch (wire_) {
      case Wire::varint:
        value_ = varint();
        break;
      case Wire::fixed64:
        value_ = fixed(8);
        break;
      case Wire::fixed32:
        value_ = fixed(4);
        break;
      case Wire::bytes: {
        const std::uint64_t size = varint();
        if (size > end_ - at_) refuse(start_, "{} bytes where {} are left", size, end_ - at_);
        begin_ = at_;
        at_ += size;
        break;
      }
      default:
        refuse(start_, "wire type {}: expected 0, 1, 2 or 5", key & 7);
    }
    return true;
  }

  std::uint64_t field() const { return field_; }
  std::size_t start() const { return start_; }
  Wire wire() const { return wire_; }

  std::uint64_t number() const {
    if (wire_ == Wire::bytes) refuse(start_, "bytes in field {}: expected a number", field_);
    return value_;
  }
  std::string_view text() const { return file_->bytes.substr(inside(), at_ - begin_); }
  Fields message() const { return {*file_, inside(), at_}; }

  std::uint64_t varint() {
    const std::size_t first = at_;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) refuse(first, "ends within a number");
      const auto byte = static_cast<unsigned char>(file_->bytes[at_++]);
      if (shift == 63 && byte > 1) break;
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    refuse(first, "a number of more than 64 bits");
  }

 private:
  std::size_t inside() const {
    if (wire_ != Wire::bytes) refuse(start_, "a number in field {}: expected bytes", field_);
    return begin_;
  }

  std::uint64_t fixed(unsigned size) {
    if (size > end_ - at_) refuse(start_, "ends within a number");
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(file_->bytes[at_ + i])} << (8 * i);
    at_ += size;
    return value;
  }

  const ChakraFile* file_;
  std::size_t at_, end_, start_ = 0, begin_ = 0;
  std::uint64_t field_ = 0, value_ = 0;
  Wire wire_ = Wire::varint;
};

// A node's attribute: a name and a value of some type. Only numbers and text matter.
struct Attribute {
  std::string_view name, text;
  std::int64_t number = 0;
  bool is_text = false;
};

Attribute read_attribute(Fields fields) {
  Attribute a;
  while (fields.next()) {
    const std::uint64_t field = fields.field();
    if (field == 1) {
      a.name = fields.text();
    } else if (field == 29) {
      a.text = fields.text();
      a.is_text = true;
    } else if (field == 3 || field == 5) {
      const std::uint64_t bits = fields.number();
      const double value = field == 3 ? std::bit_cast<double>(bits)
                                      : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      if (value > -9e18 && value < 9e18) a.number = static_cast<std::int64_t>(value);
    } else if (field == 15 || field == 17) {  // zigzag
      const std::uint64_t bits = fields.number();
      a.number = static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
    } else if (field == 23) {
      a.number = static_cast<std::int32_t>(static_cast<std::uint32_t>(fields.number()));
    } else if (fields.wire() != Wire::bytes) {
      a.number = static_cast<std::int64_t>(fields.number());
    }
  }
  return a;
}

void keep(const Attribute& a, const Fields& fields, ChakraNode& node) {
  if (a.name == "is_cpu_op") node.on_host = a.number != 0;
  if (a.name == "pg_name") node.group = a.is_text ? std::string(a.text) : fmt::format("{}", a.number);
  const std::pair<std::string_view, std::int64_t*> numbers[] = {
      {"comm_type", &node.comm_type}, {"comm_size", &node.comm_size},     {"comm_tag", &node.tag},
      {"comm_src", &node.source},     {"comm_dst", &node.target},         {"root_rank", &node.root},
      {"num_ops", &node.operations},  {"tensor_size", &node.tensor_bytes}};
  for (const auto& [name, to] : numbers) {
    if (a.name != name) continue;
    if (a.is_text) fields.refuse(fields.start(), "'{}' as {}: expected a number", a.text, name);
    if (a.number < 0) fields.refuse(fields.start(), "{} as {}: expected 0 or more", a.number, name);
    *to = a.number;
  }
}

ChakraNode read_node(Fields fields) {
  ChakraNode node;
  node.offset = fields.at();
  while (fields.next()) {
    switch (fields.field()) {
      case 1:
        node.id = fields.number();
        break;
      case 2:
        node.name = fields.text();
        break;
      case 3:
        if (fields.number() > 7) fields.refuse(fields.start(), "node type {}: expected 1 to 7", fields.number());
        node.type = static_cast<ChakraNode::Type>(fields.number());
        break;
      case 4:
      case 5:
        if (fields.wire() == Wire::bytes) {
          Fields packed = fields.message();
          while (!packed.done()) node.after.push_back(packed.varint());
        } else {
          node.after.push_back(fields.number());
        }
        break;
      case 7:
        node.micros = fields.number();
        break;
      case 10:
        keep(read_attribute(fields.message()), fields, node);
        break;
      default:
        break;
    }
  }
  if (node.type == ChakraNode::Type::invalid)
    fields.refuse(node.offset, "node {} of no type: expected 1 to 7", node.id);
  constexpr std::uint64_t most_micros = 1'000'000'000'000;  // 11 days
  if (node.micros > most_micros)
    fields.refuse(node.offset, "node {} takes {} us: more than 11 days", node.id, node.micros);
  return node;
}

void read_metadata(Fields fields) {
  while (fields.next())
    if (fields.field() == 1 && fields.text() != "0.0.4")
      fields.refuse(fields.start(), "version '{}': expected 0.0.4", fields.text());
}

// The next message; advances to what follows it.
ChakraFrame next_frame(Fields& whole, const ChakraFile& file) {
  const std::size_t at = whole.at();
  const std::uint64_t size = whole.varint();
  const std::size_t begin = whole.at();
  if (size > file.bytes.size() - begin)
    whole.refuse(at, "a message of {} bytes where {} are left", size, file.bytes.size() - begin);
  whole = Fields(file, begin + size, file.bytes.size());
  return {begin, begin + size};
}

void expect_some(const ChakraFile& file) {
  if (file.bytes.empty()) Fields(file, 0, 0).refuse(0, "nothing there: expected a trace's metadata");
}

}  // namespace

void find_frames(const ChakraFile& file, std::vector<ChakraFrame>& frames) {
  expect_some(file);
  frames.clear();
  for (Fields whole(file, 0, file.bytes.size()); !whole.done();) frames.push_back(next_frame(whole, file));
}

ChakraNode read_node(const ChakraFile& file, ChakraFrame frame) {
  return read_node(Fields(file, frame.begin, frame.end));
}

std::vector<ChakraNode> read_chakra_nodes(const ChakraFile& file) {
  std::vector<ChakraNode> nodes;
  Fields whole(file, 0, file.bytes.size());
  for (bool first = true; !whole.done(); first = false) {
    const ChakraFrame frame = next_frame(whole, file);
    if (first)
      read_metadata({file, frame.begin, frame.end});
    else
      nodes.push_back(read_node(file, frame));
  }
  expect_some(file);
  return nodes;
}

}  // namespace trellis::sim
