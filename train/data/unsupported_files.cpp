#include "train/data/unsupported_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "text/refuse.h"

namespace trellis::train {
namespace {

// The first bytes of a file, what it is then, and whether `prepare` can make tokens of it.
constexpr std::tuple<std::string_view, const char*, bool> kinds[] = {
    {"PAR1", "a Parquet file", true},
    {"ARROW1", "an Arrow file", true},
    {"\xFF\xFF\xFF\xFF", "an Arrow stream", true},
    {"\x1F\x8B", "packed by gzip", false},
    {"\x28\xB5\x2F\xFD", "packed by zstd", false},
    {"PK\x03\x04", "a zip file", false},
    {"\x93NUMPY", "a NumPy array", false},
    {"\x89HDF", "an HDF5 file", false},
    {"BZh", "packed by bzip2", false},
    {"MMIDIDX", "Megatron's index, whose tokens are in the .bin beside it", false}};

}  // namespace

std::string prepare_command(const std::filesystem::path& path) {
  std::filesystem::path to = path;
  if (!to.has_filename()) to = to.parent_path();
  return fmt::format("python3 -m trellis.train prepare {} --tokenizer DIR -o {}", path.string(),
                     to.replace_extension("").string() + "_tokens");
}

void refuse_other_kinds(const InputFile& file) {
  char head[8] = {};
  const std::size_t n = std::min(sizeof head, file.size());
  file.read(0, n, head);
  for (const auto& [begin, what, prepared] : kinds)
    if (std::string_view(head, n).starts_with(begin))
      text::refuse("{} is {}: expected text, numbers of 2 or 4 bytes (.bin), Megatron's .bin and .idx, or .jsonl{}",
                   file.path().string(), what,
                   prepared ? fmt::format("; `{}` makes tokens of it", prepare_command(file.path())) : "");
}

void refuse_folder(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return;
  std::string kind = "a folder";
  bool prepared = false;
  for (const auto& each : std::filesystem::directory_iterator(path))
    for (const auto& [ending, what] : {std::pair{".arrow", "a folder of Arrow files"},
                                       {".parquet", "a folder of Parquet files"},
                                       {".jsonl", "a folder of .jsonl files"}})
      if (each.path().extension() == ending) kind = what, prepared = true;
  text::refuse("{} is {}: expected a file of text or tokens, or a list of them{}", path.string(), kind,
               prepared ? fmt::format("; `{}` makes tokens of it", prepare_command(path)) : "");
}

}  // namespace trellis::train
