#include "device/neff/neff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/neff/tar.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

// Reads the header's fields in order; the rest of its 1024 bytes is padding. Numbers are little-endian, as on every
// host that this runs on.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  void number(T& value) {
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  template <class T, std::size_t n>
  void number(std::array<T, n>& value) {
    std::memcpy(value.data(), bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
  }
  void text(std::string& value, std::size_t room) {
    const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + at_;
    value.assign(begin, std::find(begin, begin + room, '\0'));
    at_ += room;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

class Writer {
 public:
  template <class T>
  void number(const T& value) {
    put(&value, sizeof value, sizeof value);
  }
  template <class T, std::size_t n>
  void number(const std::array<T, n>& value) {
    put(value.data(), sizeof value, sizeof value);
  }
  void text(std::string_view value, std::size_t room) {
    if (value.size() >= room) text::refuse("'{}': expected at most {} characters", value, room - 1);
    put(value.data(), value.size(), room);
  }
  std::vector<std::byte> finish() {
    bytes_.resize(neff_header_bytes);
    return std::move(bytes_);
  }

 private:
  void put(const void* data, std::size_t bytes, std::size_t room) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + room);
    if (bytes != 0) std::memcpy(bytes_.data() + at, data, bytes);
  }
  std::vector<std::byte> bytes_;
};

template <class To, class Header>
void each_field(To& to, Header& h) {
  to.number(h.package_version);
  to.number(h.header_bytes);
  to.number(h.data_bytes);
  to.number(h.major);
  to.number(h.minor);
  to.text(h.build, 128);
  to.number(h.cores);
  to.number(h.hash);
  to.number(h.uuid);
  to.text(h.name, 256);
  to.number(h.cores_wanted);
  to.number(h.cores_of_nodes);
  to.number(h.features);
  to.number(h.logical_size);
}

}  // namespace

const NeffEntry* Neff::find(std::string_view name) const {
  const auto found = std::ranges::find(files, name, &NeffEntry::name);
  return found == files.end() ? nullptr : &*found;
}

Neff read_neff(std::span<const std::byte> bytes) {
  if (bytes.size() < neff_header_bytes)
    text::refuse("{} bytes: expected a NEFF, whose header has {}", bytes.size(), neff_header_bytes);
  Neff neff;
  Reader reader(bytes);
  each_field(reader, neff.header);
  const NeffHeader& h = neff.header;
  if (h.header_bytes != neff_header_bytes)
    text::refuse("byte 8: a header of {} bytes: expected {}, as in a NEFF", h.header_bytes, neff_header_bytes);
  const std::size_t rest = bytes.size() - neff_header_bytes;
  if (h.data_bytes != rest)
    text::refuse("byte 16: {} bytes of data: expected {}, which follow the header", h.data_bytes, rest);
  const auto data = bytes.subspan(neff_header_bytes);
  neff.is_compressed = data.size() >= 2 && data[0] == std::byte{0x1F} && data[1] == std::byte{0x8B};
  if (neff.is_compressed) return neff;
  for (TarEntry& file : read_tar(data)) neff.files.push_back({std::move(file.name), file.bytes});
  return neff;
}

std::string_view program_of(const Neff& neff) {
  const NeffEntry* const file = neff.find(neff_program_file);
  if (file == nullptr)
    throw ForeignNeffError(
        fmt::format("NEFF '{}' has no {}: it holds instructions of a NeuronCore, whose encoding is not public; only "
                    "programs that `trellis neff make` wrote can run here",
                    neff.header.name, neff_program_file));
  return {reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()};
}

std::vector<std::byte> write_neff(std::string_view name, std::string_view program, std::uint32_t physical_cores) {
  std::vector<std::byte> archive;
  append_tar(archive, neff_program_file, program);
  end_tar(archive);
  NeffHeader header;
  header.data_bytes = archive.size();
  header.build = "trellis";
  header.name = name;
  header.cores_of_nodes[0] = 1;
  header.logical_size = physical_cores;
  Writer writer;
  each_field(writer, header);
  std::vector<std::byte> out = writer.finish();
  out.insert(out.end(), archive.begin(), archive.end());
  return out;
}

}  // namespace trellis::device
