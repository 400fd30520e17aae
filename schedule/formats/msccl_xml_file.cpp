#include "schedule/formats/msccl_xml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <pugixml.hpp>
#include <sstream>
#include <stdexcept>

#include "text/number_parsing.h"
#include "text/refuse.h"

namespace trellis::schedule::msccl {
namespace {

constexpr std::array<std::string_view, 9> type_names{"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"};
constexpr std::string_view buffer_names = "ios";  // input, output, scratch
constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

std::string_view name(XmlStepType type) { return type_names.at(static_cast<std::size_t>(type)); }

// An XML element with its path, for error messages.
class Element {
 public:
  Element(pugi::xml_node node, std::string place) : node_(node), place_(std::move(place)) {}

  template <class... T>
  [[noreturn]] void fail(fmt::format_string<T...> why, T&&... values) const {
    throw std::invalid_argument(place_ + ": " + fmt::format(why, std::forward<T>(values)...));
  }

  std::string text(const char* attribute, std::optional<std::string> otherwise = {}) const {
    const pugi::xml_attribute found = node_.attribute(attribute);
    if (!found && !otherwise) fail("has no attribute {}", attribute);
    return found ? found.value() : *otherwise;
  }

  std::int32_t number(const char* attribute, std::int32_t least, std::int32_t greatest,
                      std::optional<std::int32_t> otherwise = {}) const {
    if (!node_.attribute(attribute) && otherwise) return *otherwise;
    const std::string value = text(attribute);
    const auto number = text::number<std::int32_t>(value, least, greatest);
    if (!number) fail("{}=\"{}\": expected {} to {}", attribute, value.substr(0, 40), least, greatest);
    return *number;
  }

  // Calls visit for each child element; all must be called `name`.
  template <class Visit>
  void each(std::string_view name, Visit visit) const {
    std::size_t at = 0;
    for (const pugi::xml_node child : node_.children()) {
      if (child.type() != pugi::node_element) continue;
      if (child.name() != name)
        fail("contains an element '{}': expected '{}'", std::string_view(child.name()).substr(0, 40), name);
      visit(child, at++);
    }
  }

 private:
  pugi::xml_node node_;
  std::string place_;
};

XmlStepType type_of(const Element& element) {
  const std::string text = element.text("type");
  const auto found = std::ranges::find(type_names, text);
  if (found == type_names.end())
    element.fail("type=\"{}\": expected s, r, rcs, rrs, rrc, rrcs, cpy, re or nop", text.substr(0, 40));
  return static_cast<XmlStepType>(found - type_names.begin());
}

BufferOffset where(const Element& element, const char* buffer, const char* offset, std::int32_t count) {
  const std::string text = element.text(buffer);
  const std::size_t found = text.size() == 1 ? buffer_names.find(text) : std::string_view::npos;
  if (found == std::string_view::npos) element.fail("{}=\"{}\": expected i, o or s", buffer, text.substr(0, 40));
  return {static_cast<Buffer>(found), element.number(offset, 0, most - count)};
}

XmlStep read_step(const Element& element, const XmlThreadBlock& block, std::size_t position) {
  XmlStep step;
  element.number("s", static_cast<std::int32_t>(position), static_cast<std::int32_t>(position));
  step.type = type_of(element);
  if (step.type != XmlStepType::nop) step.count = element.number("cnt", 1, most);
  if (needs_source(step.type)) step.source = where(element, "srcbuf", "srcoff", step.count);
  if (needs_target(step.type)) step.target = where(element, "dstbuf", "dstoff", step.count);
  step.wait_block = element.number("depid", -1, most, -1);
  step.wait_step = element.number("deps", step.wait_block < 0 ? -1 : 0, most,
                                  step.wait_block < 0 ? std::optional(-1) : std::nullopt);
  step.waited_for = element.number("hasdep", 0, 1, 0) == 1;
  if (sends(step.type) && block.send < 0) element.fail("sends, but its thread block has no peer to send to");
  if (receives(step.type) && block.recv < 0) element.fail("receives, but its thread block has no peer to receive from");
  return step;
}

XmlThreadBlock read_block(const pugi::xml_node& node, const std::string& place, Rank rank, Rank ranks) {
  const Element unnamed(node, place + " tb");
  XmlThreadBlock block;
  block.id = unnamed.number("id", 0, most);
  const std::string here = fmt::format("{} tb {}", place, block.id);
  const Element element(node, here);
  block.send = element.number("send", -1, ranks - 1);
  block.recv = element.number("recv", -1, ranks - 1);
  block.channel = element.number("chan", -1, 255);
  if (block.send == rank || block.recv == rank) element.fail("has its own gpu for a peer");
  element.each("step", [&](const pugi::xml_node& step, std::size_t at) {
    if (block.channel < 0 && (block.send >= 0 || block.recv >= 0)) element.fail("has a peer but no channel");
    block.steps.push_back(read_step({step, fmt::format("{} step {}", here, at)}, block, at));
  });
  return block;
}

XmlGpu read_gpu(const Element& element, const std::string& place, Rank rank, Rank ranks) {
  XmlGpu gpu;
  gpu.inputs = element.number("i_chunks", 0, most, 0);
  gpu.outputs = element.number("o_chunks", 0, most, 0);
  gpu.scratch = element.number("s_chunks", 0, most, 0);
  std::vector<std::int32_t> ids;
  element.each("tb", [&](const pugi::xml_node& node, std::size_t) {
    gpu.blocks.push_back(read_block(node, place, rank, ranks));
    if (gpu.blocks.size() > most_blocks) element.fail("has more than {} thread blocks", most_blocks);
    ids.push_back(gpu.blocks.back().id);
  });
  std::ranges::sort(ids);
  if (const auto twice = std::ranges::adjacent_find(ids); twice != ids.end())
    element.fail("has thread block {} twice", *twice);
  return gpu;
}

// Converts a byte offset to line and column.
std::string place_of(std::string_view xml, std::ptrdiff_t offset) {
  const std::string_view before =
      xml.substr(0, std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), xml.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  return fmt::format("line {} column {}", line, before.size() - (before.rfind('\n') + 1) + 1);
}

void append(pugi::xml_node& node, const char* name, std::int32_t value) {
  node.append_attribute(name).set_value(value);
}

void write_step(pugi::xml_node node, const XmlStep& step, std::size_t position) {
  const auto buffer = [&](const char* name, Buffer b) {
    node.append_attribute(name).set_value(std::string(1, buffer_names[static_cast<std::size_t>(b)]).c_str());
  };
  append(node, "s", static_cast<std::int32_t>(position));
  node.append_attribute("type").set_value(std::string(name(step.type)).c_str());
  const bool nop = step.type == XmlStepType::nop;
  buffer("srcbuf", step.source.buffer);
  append(node, "srcoff", nop ? -1 : step.source.offset);
  buffer("dstbuf", step.target.buffer);
  append(node, "dstoff", nop ? -1 : step.target.offset);
  append(node, "cnt", step.count);
  append(node, "depid", step.wait_block);
  append(node, "deps", step.wait_step);
  append(node, "hasdep", step.waited_for ? 1 : 0);
}

}  // namespace

XmlFile read(std::string_view xml) {
  pugi::xml_document document;
  const auto result = document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) text::refuse("{}: {}", place_of(xml, result.offset), result.description());
  const Element whole(document.root(), "the file");
  std::optional<XmlFile> file;
  whole.each("algo", [&](const pugi::xml_node& node, std::size_t) {
    if (file) whole.fail("contains a second algo");
    const Element algo(node, "algo");
    file.emplace();
    file->name = algo.text("name", "");
    file->collective = algo.text("coll");
    file->chunks = algo.number("nchunksperloop", 1, most);
    file->in_place = algo.number("inplace", 0, 1, 0) == 1;
    file->out_of_place = algo.number("outofplace", 0, 1, file->in_place ? 0 : 1) == 1;
    file->channels = algo.number("nchannels", 1, 256);
    const Rank ranks = algo.number("ngpus", 1, most);
    std::vector<std::optional<XmlGpu>> gpus;
    algo.each("gpu", [&](const pugi::xml_node&, std::size_t) { gpus.emplace_back(); });
    if (gpus.size() != static_cast<std::size_t>(ranks)) algo.fail("has {} gpus: ngpus says {}", gpus.size(), ranks);
    algo.each("gpu", [&](const pugi::xml_node& child, std::size_t at) {
      const Rank rank = Element(child, fmt::format("gpu at position {}", at)).number("id", 0, ranks - 1);
      if (gpus[rank]) algo.fail("has gpu {} twice", rank);
      const std::string place = fmt::format("gpu {}", rank);
      gpus[rank] = read_gpu({child, place}, place, rank, ranks);
    });
    for (auto& gpu : gpus) file->gpus.push_back(std::move(*gpu));
  });
  if (!file) whole.fail("contains no algo");
  return std::move(*file);
}

std::string write(const XmlFile& file) {
  pugi::xml_document document;
  pugi::xml_node algo = document.append_child("algo");
  algo.append_attribute("name").set_value(file.name.c_str());
  algo.append_attribute("proto").set_value("Simple");
  append(algo, "nchannels", file.channels);
  append(algo, "nchunksperloop", file.chunks);
  append(algo, "ngpus", static_cast<std::int32_t>(file.gpus.size()));
  algo.append_attribute("coll").set_value(file.collective.c_str());
  append(algo, "inplace", file.in_place ? 1 : 0);
  append(algo, "outofplace", file.out_of_place ? 1 : 0);
  append(algo, "minBytes", 0);
  append(algo, "maxBytes", 0);  // no limit
  for (std::size_t r = 0; r < file.gpus.size(); ++r) {
    pugi::xml_node gpu = algo.append_child("gpu");
    append(gpu, "id", static_cast<std::int32_t>(r));
    append(gpu, "i_chunks", file.gpus[r].inputs);
    append(gpu, "o_chunks", file.gpus[r].outputs);
    append(gpu, "s_chunks", file.gpus[r].scratch);
    for (const XmlThreadBlock& block : file.gpus[r].blocks) {
      pugi::xml_node tb = gpu.append_child("tb");
      append(tb, "id", block.id);
      append(tb, "send", block.send);
      append(tb, "recv", block.recv);
      append(tb, "chan", block.channel);
      for (std::size_t i = 0; i < block.steps.size(); ++i) write_step(tb.append_child("step"), block.steps[i], i);
    }
  }
  std::ostringstream text;
  document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration, pugi::encoding_utf8);
  return text.str();
}

}  // namespace trellis::schedule::msccl
