#include "train/trainer/tensorboard_events.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <span>
#include <system_error>

#include "kernels/types/crc32c.h"
#include "text/protobuf_writer.h"
#include "train/checkpoint/shard.h"

namespace trellis::train {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

text::ProtobufWriter event_now() {
  text::ProtobufWriter event;
  event.real(1, now());  // wall_time
  return event;
}

constexpr std::string_view file_begin = "events.out.tfevents";
constexpr std::size_t head_bytes = 12, tail_bytes = 4;  // around a record: its length and two checksums

// The number of an event's field 2; -1: there is none, or this is no event. Only wall_time may come before.
std::int64_t step_of(std::string_view event) {
  constexpr unsigned char wall_time = 1 << 3 | 1, step = 2 << 3;
  constexpr std::size_t wall_bytes = 9;
  if (event.size() > wall_bytes && static_cast<unsigned char>(event[0]) == wall_time) event.remove_prefix(wall_bytes);
  if (event.empty() || static_cast<unsigned char>(event[0]) != step) return -1;
  std::uint64_t value = 0;
  for (std::size_t i = 1, shift = 0; i < event.size() && shift < 64; ++i, shift += 7) {
    const auto byte = static_cast<unsigned char>(event[i]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80) == 0) return static_cast<std::int64_t>(value);
  }
  return -1;
}

std::string without_later(const std::string& all, std::int64_t step) {
  std::string kept;
  for (std::size_t at = 0; all.size() - at >= head_bytes;) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data() + at, sizeof size);
    const std::size_t left = all.size() - at - head_bytes;
    if (left < tail_bytes || size > left - tail_bytes) break;
    const std::size_t whole = head_bytes + size + tail_bytes;
    if (step_of(std::string_view(all).substr(at + head_bytes, size)) <= step) kept += all.substr(at, whole);
    at += whole;
  }
  return kept;
}

}  // namespace

std::uint32_t masked_crc(const std::string& bytes) {
  const std::uint32_t crc = kernels::crc32c(std::as_bytes(std::span(bytes)));
  return (crc >> 15 | crc << 17) + 0xA282'EAD8;
}

void drop_events_after(const std::filesystem::path& folder, std::int64_t step) {
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator(folder, none)) {
    if (!each.path().filename().string().starts_with(file_begin)) continue;
    std::ifstream in(each.path(), std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    if (std::string kept = without_later(all, step); kept.size() != all.size()) write_whole(each.path(), kept);
  }
}

TensorBoardEvents::TensorBoardEvents(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  path_ = folder / fmt::format("{}.{:.0f}.trellis.{}", file_begin, now(), getpid());
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path_.string());
  text::ProtobufWriter event = event_now();
  event.text(3, "brain.Event:2");
  record(event.bytes());
}

TensorBoardEvents::~TensorBoardEvents() { close(fd_); }

void TensorBoardEvents::scalar(const std::string& tag, std::int64_t step, float value) {
  text::ProtobufWriter one, summary, event = event_now();
  one.text(1, tag);
  one.real(2, value);
  summary.message(1, one);
  event.number(2, static_cast<std::uint64_t>(step));
  event.message(5, summary);
  record(event.bytes());
}

void TensorBoardEvents::record(const std::string& event) {
  std::string length, out;
  text::put_little(length, static_cast<std::uint64_t>(event.size()));
  out = length;
  text::put_little(out, masked_crc(length));
  out += event;
  text::put_little(out, masked_crc(event));
  if (write(fd_, out.data(), out.size()) != static_cast<ssize_t>(out.size()))
    throw std::system_error(errno, std::generic_category(), path_.string());
}

}  // namespace trellis::train
