// Protects: bundles. tar can read the archive, and it exists completely or not at all. Names of
// persons and machines are removed wherever they are whole words. The folder of a failed
// configuration can be run again, also on SPIR-V devices and if its operands are too large to be
// included.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "runtime/device/backend.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/system/process.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bundle/archive.hpp"
#include "tuner/bundle/bundle_files.hpp"
#include "tuner/bundle/failed_choice.hpp"
#include "tuner/bundle/private_names.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/run_case.hpp"

namespace greta::test::bundle_test {
namespace {

namespace fs = std::filesystem;

std::string read_whole(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string noise(std::size_t bytes) {
  std::mt19937 random(1);
  std::string text(bytes, '\0');
  for (char& byte : text) byte = static_cast<char>(random());
  return text;
}

TEST(Archive, TarReadsWhatWasWritten) {
  const test::TemporaryFolder folder;
  const std::string deep = "bundle/" + std::string(90, 'a') + "/" + std::string(60, 'b') + ".txt";
  const std::vector<ArchiveFile> files{{"bundle/empty", ""},
                                       {"bundle/one", "x"},
                                       {"bundle/block", noise(512)},
                                       {"bundle/large", noise(3'000'001)},
                                       {deep, "deep\n"}};
  ASSERT_TRUE(write_archive(folder / "a.tar.gz", files, 1'700'000'000));
  EXPECT_EQ(folder.listing(), "a.tar.gz");
  const auto unpacked = run_process({"tar", "xzf", folder / "a.tar.gz", "-C", folder.path()}, {},
                                    std::chrono::seconds(60));
  ASSERT_TRUE(unpacked && unpacked->ok()) << unpacked->errors;
  EXPECT_EQ(unpacked->errors, "");
  for (const auto& [path, contents] : files) EXPECT_TRUE(read_whole(folder / path) == contents);
}

TEST(Archive, TakesNoFilesPlace) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a") << "mine";
  fs::create_symlink(folder / "nowhere", folder / "b");
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(check_archive(folder / name).failure().status, Status::invalid_argument);
    EXPECT_EQ(write_archive(folder / name, {{"x", "y"}}, 0).failure().status,
              Status::invalid_argument);
  }
  EXPECT_EQ(read_whole(folder / "a"), "mine");
  EXPECT_EQ(folder.listing(), "a b");
}

TEST(Archive, IsWholeOrNotThere) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(check_archive(folder / "none/a").failure().status, Status::io);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit little{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &little);
  const auto written = write_archive(folder / "a", {{"x", noise(1'000'000)}}, 0);
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.failure().status, Status::io);
  EXPECT_NE(written.failure().message.find("File too large"), std::string::npos)
      << written.failure().message;
  EXPECT_EQ(folder.listing(), "");
}

TEST(PrivateNames, AreFoundAsWords) {
  const PrivateNames names({"/srv/people/zaphod/", "/", ""}, {"zaphod", "root", ""},
                           {"heart-of-gold.example.org", "heart-of-gold", "localhost"});
  EXPECT_EQ(names.without("/srv/people/zaphod/x.hip: zaphod@heart-of-gold"), "~/x.hip: USER@HOST");
  EXPECT_EQ(names.without("heart-of-gold.example.org:/home/ford.p-1/a"), "HOST:~/a");
  // Parts of other words and names that identify nobody are kept.
  EXPECT_EQ(names.without("zaphods xzaphod zaphod_1 root localhost /home/"),
            "zaphods xzaphod zaphod_1 root localhost ~");
  EXPECT_TRUE(
      names.in(std::string_view("\x7f"
                                "ELF\0zaphod\0",
                                12)));
  EXPECT_FALSE(names.in("zaphods /srv/people"));
}

// Names such as "a", "hip" or "gemm" are also ordinary words. They identify a user only in a path
// or beside an @.
TEST(PrivateNames, ThatAreCommonWordsAreReplacedWhereTheyNameSomebody) {
  const PrivateNames names({"/data/people/hip"}, {"a", "hip", "gemm"}, {"gpu"},
                           words_of("hip:0 gemm/tiled dtype=f32; a gpu"));
  for (const std::string text :
       {"a device of hip:0 on a gpu", "gemm dtype=f32 out=f32", "kernels/templates/gemm/a.hip",
        "hip-0", "/usr/include/hip/hip_runtime.h", "/opt/rocm/include/hip/a", "a/b", "/dev/gpu",
        "/run/gemm/x", "/run/a"}) {
    EXPECT_EQ(names.without(text), text);
    EXPECT_FALSE(names.in(text)) << text;
  }
  EXPECT_EQ(names.without("/data/people/hip/x.hip"), "~/x.hip");
  EXPECT_EQ(names.without("hip@gpu: /scratch/a/kernels/a.hip"),
            "USER@HOST: /scratch/USER/kernels/a.hip");
  EXPECT_EQ(names.without("-I/scratch/gemm -L/usr/lib/gemm \"/srv/a\""),
            "-I/scratch/USER -L/usr/lib/gemm \"/srv/USER\"");
  EXPECT_EQ(names.without("/run/media/hip/disk /run/user/a/x"),
            "/run/media/USER/disk /run/user/USER/x");
  EXPECT_TRUE(names.in("\x01/scratch/a/x"));
  // A name that is no common word is replaced everywhere.
  EXPECT_EQ(PrivateNames({}, {"arthur"}, {}, {"gemm"}).without("arthur /usr/arthur"),
            "USER /usr/USER");
}

// A name may equal a variable of a kernel. The program must still compile.
TEST(PrivateNames, OfProgramsAreReplacedWhereTheyNameSomebody) {
  const PrivateNames names({"/data/people/max"}, {"max"}, {"rows"});
  const std::string program = "int max = (a + b)/max / rows; x[0]/max; max(rows, 1);\n";
  EXPECT_EQ(names.without_in_program(program), program);
  EXPECT_EQ(names.without_in_program("// max@rows, /data/people/max/a /srv/max/b /home/ford/c\n"),
            "// USER@HOST, ~/a /srv/USER/b ~/c\n");
}

// Texts of a failed configuration are filtered as well. A file that is too large is noted and is
// not an error.
TEST(BundleFiles, OfAFolderAreFilteredAndThoseWithoutRoomAreTold) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "in/case");
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / "in" / name, std::ios::binary) << text;
  };
  write("kernel-0.hip", "int zaphod;  // zaphod@x, in /srv/zaphod/gemm.hip\n");
  write("kernel-1.comp", "int zaphod;");
  write("log.txt", "by zaphod");
  write("kernel-0.co", std::string("\x7f"
                                   "ELF /srv/zaphod/x"));
  write("case/case.json", R"({"zaphod": 0.1, "problem": ["gemm zaphod"]})");
  write("case/half.json", R"({"zaphod": )");
  write("case/same.json", R"({"zaphod": 1})");
  write("case/A.bin", "zaphod");
  write("case/B.bin", std::string(2000, 'x'));
  BundleFiles files(PrivateNames({}, {"zaphod"}, {}), 1000);
  files.add_folder("failed", folder / "in");
  files.add_text("README.txt", "zaphod's");
  files.arrange("all");
  std::string found;
  for (const auto& [path, contents] : files.all()) found += path + " " + contents + "\n";
  EXPECT_EQ(found,
            "all/README.txt USER's\n"
            "all/failed/case/A.bin zaphod\n"
            "all/failed/case/case.json {\n  \"zaphod\": 0.1,\n  \"problem\": [\n    \"gemm USER\"\n"
            "  ]\n}\n\n"
            "all/failed/case/half.json {\"USER\": \n"
            "all/failed/case/same.json {\"zaphod\": 1}\n"
            "all/failed/kernel-0.hip int zaphod;  // USER@x, in /srv/USER/gemm.hip\n\n"
            "all/failed/kernel-1.comp int zaphod;\n"
            "all/failed/log.txt by USER\n");
  for (const char* remark :
       {"failed/case/B.bin: omitted: it has 2.0 KiB", "failed/case/case.json: private names",
        "failed/kernel-0.co: omitted: the compiler", "failed/kernel-0.hip: private names"}) {
    EXPECT_NE(files.remarks().find(remark), std::string::npos) << files.remarks();
  }
}

class FailedChoice : public ::testing::TestWithParam<const char*> {};

/// Returns a choice that passes. The tests change its result.
CheckedChoice choice_of(const DeviceInfo& device, const std::string& problem) {
  CheckedChoice choice;
  choice.problem = problem;
  const auto parsed = Problem::parse(problem).value();
  choice.config = built_in(parsed.op).default_config(parsed, device).text();
  choice.seed = 3;
  return choice;
}

TEST_P(FailedChoice, RunsAgainFromItsFolder) {
  const auto device = open_device(GetParam(), {}).value();
  // The first is written completely; operands of the second are drawn when it is run.
  for (const auto& [problem, whole] :
       {std::pair{"gemm dtype=f32 out=f32 m=33 n=17 k=19", true},
        std::pair{"gemm dtype=f32 out=f32 m=1 n=1024 k=2048", false}}) {
    SCOPED_TRACE(problem);
    const test::TemporaryFolder folder;
    const auto written = write_failed_choice(catalog(), device->info(),
                                             choice_of(device->info(), problem), {}, folder.path());
    ASSERT_TRUE(written) << written.failure().message;
    EXPECT_EQ(fs::exists(folder / "case/A.bin"), whole);
    const bool glsl = device->info().language == Language::glsl;
    EXPECT_TRUE(fs::exists(folder / (glsl ? "kernel-0.comp" : "kernel-0.hip")));
    auto read = read_case(folder / "case");
    ASSERT_TRUE(read) << read.failure().message;
    const auto passed = run_case(*device, *read, std::chrono::minutes(1));
    ASSERT_TRUE(passed) << passed.failure().message;
    EXPECT_EQ(*passed, "");
    // Changes an input so that the expected values no longer match.
    auto& a = read->buffers.front();
    std::fill(a.data.begin(), a.data.end(), std::byte{0x3f});
    const auto failed = run_case(*device, *read, std::chrono::minutes(1));
    ASSERT_TRUE(failed) << failed.failure().message;
    EXPECT_NE(failed->find("outside the bound"), std::string::npos) << *failed;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, FailedChoice, ::testing::Values("vulkan:0", "hip-host:1"),
                         [](const auto& device) {
                           return std::string(device.param).starts_with("vulkan") ? "lavapipe"
                                                                                  : "hip_host";
                         });

TEST(FailedChoiceCase, IsMadeForAGpuThatIsNotOpened) {
  // The device itself may hang, so only the information from its listing is used.
  DeviceInfo device = architecture_info("gfx942").value();
  device.backend = Api::hip;
  device.index = 7;
  const test::TemporaryFolder folder;
  const auto choice = choice_of(device, "gemm dtype=f16 out=f16 m=64 n=48 k=32");
  const auto written = write_failed_choice(catalog(), device, choice, {}, folder.path());
  ASSERT_TRUE(written) << written.failure().message;
  const auto read = read_case(folder / "case").value();
  EXPECT_EQ(read.architecture, "gfx942");
  EXPECT_EQ(std::memcmp(read.code_objects.at(0).data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  EXPECT_EQ(read.problem, choice.problem);
  EXPECT_EQ(read.config, choice.config);
}

TEST(FailedChoiceCase, SourcesAreThereWhereNothingCompiles) {
  const auto device = open_device("hip-host:1", {}).value();
  OpenOptions options;
  options.compiler = "/bin/false";
  const test::TemporaryFolder folder;
  const auto choice = choice_of(device->info(), "add dtype=f32 out=f32 rows=3 cols=5");
  EXPECT_FALSE(write_failed_choice(catalog(), device->info(), choice, options, folder.path()));
  EXPECT_EQ(folder.listing(), "kernel-0.hip");
}

TEST(FailedChoiceCase, WhatIsNoModuleIsNotLoaded) {
  const auto device = open_device("vulkan:0", {}).value();
  const test::TemporaryFolder folder;
  const auto choice = choice_of(device->info(), "add dtype=f32 out=f32 rows=3 cols=5");
  ASSERT_TRUE(write_failed_choice(catalog(), device->info(), choice, {}, folder.path()));
  auto read = read_case(folder / "case").value();
  auto& code = read.code_objects.front();
  const auto good = code;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{3}, std::size_t{20}, good.size() - 4}) {
    code.assign(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(run_case(*device, read, std::chrono::minutes(1)).failure().status,
              Status::invalid_argument)
        << bytes;
  }
  // SPIR-V is accepted on Vulkan devices of any architecture, and on no others.
  code = good;
  read.architecture = "gfx1103";
  EXPECT_EQ(run_case(*device, read, std::chrono::minutes(1)).value(), "");
  const auto host = open_device("hip-host:0", {}).value();
  EXPECT_EQ(run_case(*host, read, std::chrono::minutes(1)).failure().status,
            Status::invalid_argument);
}

}  // namespace
}  // namespace greta::test::bundle_test
