// Protects: the selection of devices by "auto", id or name, with an explanation if there is no
// match.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <set>
#include <string_view>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"
#include "tests/layers.hpp"

namespace greta::test::selection_test {

namespace {

struct FakeBackend final : Backend {
  explicit FakeBackend(Api of = Api::vulkan) : api_(of) {}
  Api api() const override { return api_; }
  Probe probe() override {
    ++probed;
    return found;
  }
  Result<std::unique_ptr<Device>> open(int, const OpenOptions&) override {
    return Failure{Status::unavailable, "a fake", {}};
  }
  void add(const std::string& device, DeviceKind kind, bool usable = true) {
    ProbedDevice probed;
    probed.info.backend = api();
    probed.info.index = static_cast<int>(found.devices.size());
    probed.info.name = device;
    probed.info.kind = kind;
    probed.usable = usable;
    probed.reason = usable ? "" : "it is broken";
    found.available = true;
    found.devices.push_back(probed);
  }
  Probe found;
  int probed = 0;  ///< times

 private:
  Api api_;
};

class Selection : public ::testing::Test {
 protected:
  Selection() {
    backend_.add("Software Renderer", DeviceKind::cpu);
    backend_.add("Broken Monster 9000", DeviceKind::discrete_gpu, false);
    backend_.add("Small Graphics 100", DeviceKind::integrated_gpu);
    backend_.add("Big Graphics 200", DeviceKind::discrete_gpu);
    backend_.add("Big Graphics 200", DeviceKind::discrete_gpu);
  }
  Result<ProbedDevice> select(std::string_view wanted) {
    return select_device(wanted, {&backend_});
  }
  FakeBackend backend_;
};

TEST_F(Selection, AutoTakesTheBestRealGpu) {
  EXPECT_EQ(select("auto")->info.id(), "vulkan:3");
}

// A card keeps its address while its place in the list changes.
TEST_F(Selection, AnAddressSelectsACard) {
  auto& cards = backend_.found.devices;
  cards[3].info.card = {"6e8f0a3b00000000000000000000c0de", "0000:c1:00.0"};
  cards[4].info.card = {"6e8f0a3b00000000000000000000beef", ""};
  cards[0].info.card = cards[4].info.card;  // a device on the CPU is no card
  EXPECT_EQ(select("0000:C1:00.0")->info.id(), "vulkan:3");
  EXPECT_EQ(select("vulkan:0000:c1:00.0")->info.id(), "vulkan:3");
  EXPECT_EQ(select("GPU-6e8f0a3b-0000-0000-0000-00000000beef")->info.id(), "vulkan:4");
  for (const auto& device : {cards[0], cards[2], cards[3], cards[4]}) {
    EXPECT_EQ(select(device.info.address())->info.id(), device.info.id());
  }
  EXPECT_EQ(cards[3].info.address(), "vulkan:0000:c1:00.0");
  EXPECT_FALSE(select("hip:0000:c1:00.0"));
  EXPECT_FALSE(select("0000:c2:00.0"));
}

TEST_F(Selection, AutoFallsBackToTheCpu) {
  FakeBackend backend;
  backend.add("Broken", DeviceKind::discrete_gpu, false);
  backend.add("Software", DeviceKind::cpu);
  EXPECT_EQ(select_device("auto", {&backend})->info.id(), "vulkan:1");
}

TEST_F(Selection, ByIdAndByPartOfTheName) {
  EXPECT_EQ(select("vulkan:0")->info.id(), "vulkan:0");
  EXPECT_EQ(select("VULKAN:4")->info.id(), "vulkan:4");
  EXPECT_EQ(select("small")->info.id(), "vulkan:2");
  EXPECT_EQ(select("GRAPHICS")->info.id(), "vulkan:3") << "the better one of two";
}

TEST_F(Selection, AnIdProbesItsBackendAlone) {
  FakeBackend host(Api::hip_host);
  host.add("vulkan:1, imitated", DeviceKind::cpu);
  host.add("vulkan:9, imitated", DeviceKind::cpu);
  EXPECT_EQ(select_device("vulkan:2", {&host, &backend_})->info.id(), "vulkan:2");
  EXPECT_FALSE(select_device("vulkan:1", {&host, &backend_})) << "it is broken";
  EXPECT_EQ(host.probed, 0);
  EXPECT_EQ(select_device("hip-host:1", {&host, &backend_})->info.id(), "hip-host:1");
  EXPECT_EQ(backend_.probed, 2);
  EXPECT_EQ(select_device("vulkan:9", {&host, &backend_})->info.id(), "hip-host:1");
  EXPECT_FALSE(select_device("vulkan:", {&backend_}));
}

TEST_F(Selection, ByABackendTakesItsFirstUsableDevice) {
  EXPECT_EQ(select("vulkan")->info.id(), "vulkan:0");
  FakeBackend backend;
  backend.add("Broken", DeviceKind::discrete_gpu, false);
  backend.add("Renderer of Vulkan", DeviceKind::cpu);
  backend.add("Graphics", DeviceKind::discrete_gpu);
  EXPECT_EQ(select_device("Vulkan", {&backend})->info.id(), "vulkan:1");
  EXPECT_FALSE(select_device("hip", {&backend}));
}

TEST_F(Selection, AnUnknownNameSaysWhatThereIs) {
  for (const std::string wanted : {"nonsense", "vulkan:9", ""}) {
    const auto failure = select(wanted).failure();
    EXPECT_EQ(failure.status, Status::unavailable);
    for (const auto& device : backend_.found.devices) {
      EXPECT_NE(failure.message.find(device.info.id() + " (" + device.info.name), std::string::npos)
          << failure.message;
    }
    EXPECT_NE(failure.message.find("it is broken"), std::string::npos) << failure.message;
  }
}

TEST_F(Selection, ABrokenDeviceIsRefusedWithItsReason) {
  EXPECT_NE(select("vulkan:1").failure().message.find("it is broken"), std::string::npos);
  EXPECT_EQ(select("monster").failure().status, Status::unavailable);
}

TEST_F(Selection, AnAbsentBackendSaysWhy) {
  FakeBackend absent;
  absent.found.reason = "its library was not found";
  const auto failure = select_device("auto", {&absent}).failure();
  EXPECT_NE(failure.message.find("vulkan: its library was not found"), std::string::npos)
      << failure.message;
}

TEST(Backends, HaveDistinctNamesAndSayWhyTheyAreAbsent) {
  ASSERT_FALSE(backends().empty());
  std::set<std::string_view> names;
  for (Backend* const backend : backends()) {
    EXPECT_TRUE(names.insert(to_string(backend->api())).second);
    const Probe probe = backend->probe();
    EXPECT_EQ(probe.available, probe.reason.empty());
    for (const auto& device : probe.devices) {
      EXPECT_TRUE(device.usable || !device.reason.empty()) << device.info.name;
      EXPECT_EQ(device.info.fingerprint().size(), 32U);
      EXPECT_TRUE(!device.info.is_cpu() || !device.reason.empty()) << "a CPU device says so";
    }
    EXPECT_EQ(backend->open(-1, {}).failure().status, Status::unavailable);
    EXPECT_EQ(backend->open(1000, {}).failure().status, Status::unavailable);
  }
}

// Sets an environment variable that later tests of the same process do not see.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value, 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Mesa's AMD driver pretends to have the GPU that RADV_FORCE_FAMILY names, and executes nothing.
TEST(NullHardware, IsListedButNeverTaken) {
  const ScopedVariable family("RADV_FORCE_FAMILY", "gfx1100");
  const auto backend = vulkan::create_backend();
  const Probe probe = backend->probe();
  bool listed = false;
  for (const auto& device : probe.devices) {
    if (device.info.architecture != "gfx1100") continue;
    listed = true;
    EXPECT_FALSE(device.usable);
    EXPECT_TRUE(device.compile_only);
    EXPECT_NE(device.reason.find("null hardware"), std::string::npos) << device.reason;
    EXPECT_EQ(select_device(device.info.id(), {backend.get()}).failure().status,
              Status::unavailable);
    EXPECT_EQ(backend->open(device.info.index, {}).failure().status, Status::unavailable);
  }
  EXPECT_TRUE(listed) << "Mesa's AMD driver is not installed";
  const auto chosen = select_device("auto", {backend.get()});
  EXPECT_TRUE(!chosen || chosen->info.architecture != "gfx1100");
}

TEST(NoDriver, IsAReasonNotAnError) {
  const ScopedVariable old_name("VK_ICD_FILENAMES", "/nonexistent.json");
  const ScopedVariable new_name("VK_DRIVER_FILES", "/nonexistent.json");
  const auto backend = vulkan::create_backend();
  const Probe probe = backend->probe();
  EXPECT_FALSE(probe.available);
  EXPECT_NE(probe.reason.find("driver"), std::string::npos) << probe.reason;
}

}  // namespace

}  // namespace greta::test::selection_test
