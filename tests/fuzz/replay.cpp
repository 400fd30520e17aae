// Feeds every file of the corpus folders named on the command line to a fuzz target, without libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) try {
  std::size_t fed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& path : files_below(argv[i])) {
      // Named first, so that the last line before a crash tells which input it was.
      std::printf("%s\n", path.c_str());
      std::fflush(stdout);
      const std::vector<std::uint8_t> bytes = bytes_of(path);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
      ++fed;
    }
  }
  if (fed == 0) std::fprintf(stderr, "no corpus: a fuzz target needs at least one seed\n");
  return fed == 0 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
