// TensorBoard's event files: records of scalars, as TensorBoard reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trellis::train {

class TensorBoardEvents {
 public:
  explicit TensorBoardEvents(const std::filesystem::path& folder);  // a new file in it; throws system_error
  ~TensorBoardEvents();
  TensorBoardEvents(const TensorBoardEvents&) = delete;
  TensorBoardEvents& operator=(const TensorBoardEvents&) = delete;
  void scalar(const std::string& tag, std::int64_t step, float value);
  const std::filesystem::path& path() const { return path_; }

 private:
  void record(const std::string& event);
  std::filesystem::path path_;
  int fd_ = -1;
};

// Rewrites the folder's event files without the events of later steps, and without a last record that was cut off.
void drop_events_after(const std::filesystem::path& folder, std::int64_t step);

// CRC-32C, as records carry it: rotated and with a constant added.
std::uint32_t masked_crc(const std::string&);

}  // namespace trellis::train
