// Protects: scripts for other machines contain nothing that a login shell changes, and what comes
// back is read whatever a login shell says in between, and however it is cut.
#include "tuner/remote/remote_script.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test::remote_script_test {
namespace {

TEST(RemoteScript, HasNoCharactersThatAnyShellChangesWithinQuotes) {
  const std::string folder = "/home/user/.cache/greta/remote/runs/1";
  for (const std::string& script :
       {look_script("", "1"), look_script("a/b", ""), copy_build_script(folder),
        devices_script(folder), start_script(folder), stop_script(folder), fetch_script(folder),
        finish_script(folder, true), finish_script(folder, false), clean_script(folder),
        follow_script(folder, {})}) {
    EXPECT_EQ(script.find_first_of("'\\!"), std::string::npos) << script;
  }
}

TEST(RemoteScript, Words) {
  EXPECT_EQ(quoted("a b"), "'a b'");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(quoted(""), "''");
  for (const char* const good : {"/a/b-c_d.e", "greta", "a+b@c"}) EXPECT_TRUE(is_plain_path(good));
  for (const char* const bad : {"", "-a", "a b", "a;b", "$a", "a'b", "a\nb", "~"}) {
    EXPECT_FALSE(is_plain_path(bad)) << bad;
  }
}

TEST(RemoteScript, Look) {
  const std::string said =
      "Welcome!\ngreta-remote\n/home/f/.cache/greta/remote\nLinux\nx86_64\n"
      "/dev/my disk 100 60 40 60% /home\nended\nabc\ndef\n";
  const auto place = read_look(said);
  ASSERT_TRUE(place) << place.failure().message;
  EXPECT_EQ(place->folder, "/home/f/.cache/greta/remote");
  EXPECT_EQ(place->system, "Linux");
  EXPECT_EQ(place->architecture, "x86_64");
  EXPECT_EQ(place->free_kib, 40U);
  EXPECT_EQ(place->state, "ended");
  EXPECT_EQ(place->builds, (std::vector<std::string>{"abc", "def"}));
  for (const char* const bad :
       {"", "greta-remote\n", "greta-remote\n/a\nLinux\nx86_64\nx 1 2 3 4% /\n",
        "greta-remote\n/a b\nLinux\nx86_64\nx 1 2 3 4% /\nnone\n",
        "greta-remote\nrelative\nLinux\nx86_64\nx 1 2 3 4% /\nnone\n",
        "greta-remote\n/a\nLinux\nx86_64\nno figures\nnone\n"}) {
    EXPECT_FALSE(read_look(bad)) << bad;
  }
}

TEST(RemoteScript, FramesOfAnyCut) {
  const std::string all = "motd\nO 5\na\nb\ncK\nE 2\nx\nO 0\nX 3\n";
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    std::string text = all.substr(0, cut), seen;
    const auto read = [&] {
      while (const auto frame = next_frame(text)) seen += frame->kind + frame->content + ";";
    };
    read();
    text += all.substr(cut);
    read();
    EXPECT_EQ(seen, "Oa\nb\nc;K;Ex\n;O;X3;") << cut;
    EXPECT_EQ(text, "");
  }
}

TEST(RemoteScript, ABuildThatDoesNotStart) {
  EXPECT_EQ(broken_build("Welcome!\n"), "");
  EXPECT_EQ(broken_build("Welcome!\ngreta-does-not-start\nfirst\nlast\n\n"), "last");
  EXPECT_EQ(broken_build("greta-does-not-start\n\n"), "greta-tune does not start");
}

TEST(RemoteScript, AMissingGpu) {
  EXPECT_EQ(missing_gpu(R"(hello [{"devices":[{"kind":"discrete GPU","usable":true}]}])"), "");
  EXPECT_EQ(missing_gpu(R"([{"devices":[],"reason":"no driver"},)"
                        R"({"devices":[{"kind":"CPU","usable":true}],"reason":""}])"),
            "no driver");
  EXPECT_EQ(missing_gpu(R"([{"devices":[{"kind":"CPU","usable":true}]}])"), "all devices are CPUs");
  for (const char* const bad : {"", "[", "[1]", R"([{"devices":7}])", R"([{"devices":[{}]}])"}) {
    EXPECT_EQ(missing_gpu(bad), "it does not list its devices") << bad;
  }
}

}  // namespace
}  // namespace greta::test::remote_script_test
