#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/bounded_map.h"
#include "ccl/store.h"
#include "device/fork_mark.h"
#include "net/sha256.h"
#include "net/socket.h"
#include "text/words.h"

namespace trellis::ccl {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr milliseconds lock_patience{30'000};
// Polls, since the kernel does not report other hosts' changes in network folders.
constexpr milliseconds look_again{20};
constexpr std::string_view note_prefix = "note.", draft_prefix = "draft.";

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

// Maps any key to a file name: characters that are not allowed are written like %2F; a name that gets too long is
// replaced by its digest.
std::string file_of(std::string_view key) {
  std::string name(note_prefix);
  for (char c : key) name += text::in_name(c) ? std::string(1, c) : "%" + net::hexadecimal(net::bytes_of({&c, 1}));
  if (name.size() > 200) return std::string(note_prefix) + "%%" + net::hexadecimal(net::sha256(net::bytes_of(key)));
  return name;
}

Bytes all_of(const net::Descriptor& file, const fs::path& path) {
  struct stat about = {};
  if (fstat(file.number(), &about) != 0) throw failure(path.string());
  if (about.st_uid != geteuid())
    throw std::system_error(EACCES, std::generic_category(),
                            fmt::format("{} belongs to user {}, not to {}", path.string(), about.st_uid, geteuid()));
  Bytes bytes(std::min<std::size_t>(static_cast<std::size_t>(about.st_size), most_value_bytes));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.number(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw failure(path.string());
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

net::Descriptor opened(const fs::path& path, int flags) {
  return net::Descriptor(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
}

class FileStore : public Store {
 public:
  FileStore(const fs::path& folder, const std::string& job);
  ~FileStore() override;
  void set(std::string_view key, std::span<const std::byte> value) override;
  Bytes get(std::string_view key, Deadline) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;

 private:
  std::optional<Bytes> find(const fs::path& note) const;
  void write(const fs::path& note, std::span<const std::byte> value) const;
  void join(const std::string& job);
  void check_job(const std::string& job) const;
  bool has_notes() const;
  void sweep() const;

  fs::path folder_;
  const device::ForkMark mark_;
  net::Descriptor in_use_;  // holds a shared lock while the store is open; the kernel releases it when the process dies
};

// Waits for the lock. A stopped process may hold it for long.
bool lock_before(const net::Descriptor& file, int how, Deadline deadline) {
  while (flock(file.number(), how | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw failure("locking a file of the store");
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

FileStore::FileStore(const fs::path& folder, const std::string& job) : folder_(folder) {
  if (folder.empty()) throw std::invalid_argument("a file store needs a folder's name");
  std::error_code trouble;
  const bool made = fs::create_directories(folder, trouble);
  if (trouble) throw std::system_error(trouble, fmt::format("the store's folder {}", folder.string()));
  if (made) fs::permissions(folder, fs::perms::owner_all);
  join(job);
}

// The first process refuses a folder with an earlier job's notes, and writes its own job's name, if any, into a file
// there. Then all processes share the lock.
void FileStore::join(const std::string& job) {
  const fs::path lock = folder_ / "in_use";
  const Deadline deadline = Clock::now() + lock_patience;
  while (true) {
    in_use_ = opened(lock, O_RDWR | O_CREAT);
    if (!in_use_) throw failure(fmt::format("the store's folder {} cannot be written", folder_.string()));
    const bool alone = flock(in_use_.number(), LOCK_EX | LOCK_NB) == 0;
    struct stat ours = {}, named = {};
    if (fstat(in_use_.number(), &ours) != 0) throw failure(lock.string());
    if (stat(lock.c_str(), &named) != 0 || ours.st_ino != named.st_ino) continue;  // the last one to leave removed it
    if (alone && has_notes())
      throw std::system_error(EEXIST, std::generic_category(),
                              fmt::format("the store's folder {} holds notes of a job that is over: remove it, or name "
                                          "another one",
                                          folder_.string()));
    if (alone && !job.empty()) write(folder_ / "job", net::bytes_of(job));
    if (!lock_before(in_use_, LOCK_SH, deadline))
      throw TimedOut(fmt::format("the store's folder {} is locked by a process that has stopped", folder_.string()));
    // Between the two locks, the last other process may have left and removed the file.
    if (stat(lock.c_str(), &named) == 0 && ours.st_ino == named.st_ino) break;
  }
  check_job(job);
}

void FileStore::check_job(const std::string& job) const {
  const std::optional<Bytes> there = find(folder_ / "job");
  if (job.empty() || !there || std::ranges::equal(*there, net::bytes_of(job))) return;
  throw std::system_error(
      EEXIST, std::generic_category(),
      fmt::format("the store's folder {} is in use by job '{}', and this is job '{}'", folder_.string(),
                  std::string_view(reinterpret_cast<const char*>(there->data()), there->size()), job));
}

// A forked process shares its parent's lock, which is the parent's to release.
FileStore::~FileStore() {
  if (mark_.forked()) return;
  if (flock(in_use_.number(), LOCK_EX | LOCK_NB) == 0) sweep();
}

bool FileStore::has_notes() const {
  return std::ranges::any_of(fs::directory_iterator(folder_), [](const fs::directory_entry& e) {
    return e.path().filename().string().starts_with(note_prefix);
  });
}

// Removes only the files that stores write. The lock file goes last; a process that waits for it then checks again.
void FileStore::sweep() const {
  std::error_code ignored;
  std::vector<fs::path> ours = {folder_ / "job", folder_ / "adding"};
  for (fs::directory_iterator i(folder_, ignored), end; i != end; i.increment(ignored)) {
    const std::string name = i->path().filename().string();
    if (name.starts_with(note_prefix) || name.starts_with(draft_prefix)) ours.push_back(i->path());
  }
  for (const fs::path& path : ours) fs::remove(path, ignored);
  fs::remove(folder_ / "in_use", ignored);
}

void FileStore::write(const fs::path& note, std::span<const std::byte> value) const {
  std::array<std::byte, 8> random;
  net::fill_random(random);
  const fs::path draft = folder_ / (std::string(draft_prefix) + net::hexadecimal(random));
  bool written = false;
  {
    const net::Descriptor file = opened(draft, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) throw failure(fmt::format("the store's folder {} cannot be written", folder_.string()));
    std::size_t done = 0;
    while (done < value.size()) {
      const ssize_t put = ::write(file.number(), value.data() + done, value.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) break;
      done += static_cast<std::size_t>(put);
    }
    written = done == value.size();
  }
  if (written && rename(draft.c_str(), note.c_str()) == 0) return;
  const std::system_error error = failure(fmt::format("writing {}", note.string()));
  unlink(draft.c_str());
  throw error;
}

std::optional<Bytes> FileStore::find(const fs::path& note) const {
  const net::Descriptor file = opened(note, O_RDONLY);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) throw failure(note.string());
  return all_of(file, note);
}

void FileStore::set(std::string_view key, std::span<const std::byte> value) {
  check_key(key);
  check_value(value);
  write(folder_ / file_of(key), value);
}

Bytes FileStore::get(std::string_view key, Deadline deadline) {
  check_key(key);
  const Deadline asked_at = Clock::now();
  const fs::path note = folder_ / file_of(key);
  if (std::optional<Bytes> value = find(note)) return *std::move(value);
  const net::Descriptor changes(
      inotify_init1(IN_NONBLOCK | IN_CLOEXEC));  // may fail for lack of inotify instances: then it only polls
  if (changes) inotify_add_watch(changes.number(), folder_.c_str(), IN_MOVED_TO);
  while (true) {
    if (std::optional<Bytes> value = find(note)) return *std::move(value);
    if (Clock::now() >= deadline) throw_no_note(key, asked_at, fmt::format("folder {}", folder_.string()));
    const Deadline next = std::min(deadline, Clock::now() + look_again);
    std::array<std::byte, 4096> events;
    if (!changes)
      std::this_thread::sleep_until(next);
    else if (net::ready_before(changes.number(), POLLIN, next))
      while (read(changes.number(), events.data(), events.size()) > 0) {
      }
  }
}

std::int64_t FileStore::add(std::string_view key, std::int64_t amount) {
  check_key(key);
  const fs::path note = folder_ / file_of(key);
  const net::Descriptor lock = opened(folder_ / "adding", O_RDWR | O_CREAT);
  if (!lock) throw failure(fmt::format("the store's folder {} cannot be written", folder_.string()));
  if (!lock_before(lock, LOCK_EX, Clock::now() + lock_patience))
    throw TimedOut(fmt::format("a counter in {} is locked by a process that has stopped", folder_.string()));
  const std::optional<Bytes> counter = find(note);
  const std::int64_t sum = sum_of(key, counter ? &*counter : nullptr, amount);
  write(note, counter_of(sum));
  return sum;
}

}  // namespace

std::shared_ptr<Store> file_store(const std::filesystem::path& folder, const std::string& job) {
  return std::make_shared<FileStore>(folder, job);
}

}  // namespace trellis::ccl
