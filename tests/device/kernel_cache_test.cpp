// Protects: the kernel cache returns exactly what was stored, ignores foreign and incomplete
// entries, and survives a full disk.

#include "runtime/device/compile/kernel_cache.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "runtime/device/system/log.hpp"
#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::kernel_cache_test {

namespace {

std::vector<std::byte> binary(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

TEST(KernelCache, KeepsWhatIsStored) {
  const TemporaryFolder folder;
  KernelCache cache(folder.path() / "made" / "as needed");
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", binary(1000, 5));
  EXPECT_EQ(cache.load("key"), binary(1000, 5));
  cache.store("key", binary(10, 6));
  EXPECT_EQ(KernelCache(folder.path() / "made" / "as needed").load("key"), binary(10, 6));
  cache.store("empty", {});
  EXPECT_EQ(cache.load("empty"), binary(0, 0));
}

TEST(KernelCache, WithoutAFolderThereIsNone) {
  KernelCache cache({});
  cache.store("key", binary(10, 1));
  EXPECT_FALSE(cache.load("key"));
}

TEST(KernelCache, AnEntryOfAnotherKeyOrKindIsIgnored) {
  const TemporaryFolder folder;
  KernelCache cache(folder.path());
  cache.store("key", binary(100, 5));
  std::filesystem::copy_file(cache.path("key"), cache.path("other"));
  EXPECT_FALSE(cache.load("other"));
  std::ofstream(cache.path("text")) << "this is not a compiled kernel, though it is long enough";
  EXPECT_FALSE(cache.load("text"));
  std::filesystem::create_directory(cache.path("folder"));
  EXPECT_FALSE(cache.load("folder"));
}

TEST(KernelCache, AFullDiskIsSaidOnceAndLeavesNothing) {
  int warnings = 0;
  set_log_sink([&](LogLevel level, std::string_view) { warnings += level == LogLevel::warning; });
  const TemporaryFolder folder;
  KernelCache cache(folder.path());
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{0, RLIM_INFINITY};  // no file may grow
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  cache.store("key", binary(1000, 5));
  cache.store("other", binary(1000, 5));
  const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_FSIZE, &any);
  EXPECT_EQ(warnings, 1);
  EXPECT_FALSE(cache.load("key"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "kernels"));
  set_log_sink({});
}

TEST(KernelCache, ReadersNeverSeeHalfAnEntry) {
  const TemporaryFolder folder;
  KernelCache cache(folder.path());
  cache.store("key", binary(1 << 20, 0));
  std::thread writer([&] {
    for (int i = 1; i < 40; ++i) cache.store("key", binary(1 << 20, i));
  });
  for (int i = 0; i < 40; ++i) {
    const auto found = cache.load("key");
    ASSERT_TRUE(found) << "a published entry is always whole";
    EXPECT_EQ(found->size(), 1U << 20);
    EXPECT_EQ(found->front(), found->back());
  }
  writer.join();
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(cache.path("key").parent_path())) {
    files += file.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1U) << "temporary files are gone";
}

}  // namespace

}  // namespace greta::test::kernel_cache_test
