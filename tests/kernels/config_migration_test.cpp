// Protects: a stored configuration is read as today's template means it, or refused with the
// reason; and a template whose parameters change without a migration is found.
#include "kernels/model/config_migration.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/layers.hpp"

namespace greta::test::config_migration_test {
namespace {

struct Nothing {};

const ProblemShape& no_shape() {
  static const ProblemShape shape{Nothing{}};
  return shape;
}

/// Returns the text of a configuration as carried over, or the reason why it can't be.
std::string carried(const std::vector<Parameter>& today,
                    const std::vector<ConfigMigration>& migrations, const Config& stored) {
  const Alternative variant{"new", today, {}};
  const auto done = migrated(variant, migrations, no_shape(), DeviceInfo{}, stored);
  return done ? done->config.text() : done.failure().message;
}

std::vector<std::string> changes(const std::vector<Parameter>& today,
                                 const std::vector<ConfigMigration>& migrations,
                                 const Config& stored) {
  const Alternative variant{"new", today, {}};
  return migrated(variant, migrations, no_shape(), DeviceInfo{}, stored).value().changes;
}

const Parameter a{"A", {1, 2}}, b{"B", {1, 2}}, c{"C", {1, 2}};

TEST(ConfigMigration, AConfigurationOfTodayIsAsItIs) {
  const Config stored{"new", {{"A", 1}, {"B", 2}}};
  EXPECT_EQ(carried({a, b}, {added("B", 1)}, stored), stored.text());
  EXPECT_TRUE(changes({a, b}, {added("B", 1)}, stored).empty());
}

TEST(ConfigMigration, ANewParameterHasItsNeutralValueAtItsPlace) {
  const Config stored{"new", {{"A", 2}, {"C", 1}}};
  EXPECT_EQ(carried({a, b, c}, {added("B", 7)}, stored), "new A=2 B=7 C=1");
  EXPECT_EQ(changes({a, b, c}, {added("B", 7)}, stored), std::vector<std::string>{"B=7 added"});
  const auto twice = [](const ProblemShape&, const DeviceInfo&, const Config& config) {
    return 2 * config["A"];
  };
  EXPECT_EQ(carried({a, b, c}, {added("B", twice)}, stored), "new A=2 B=4 C=1");
  EXPECT_EQ(carried({a, b}, {added("B", twice)}, {"new", {}}),
            "configuration \"new\" has no parameter A");
}

TEST(ConfigMigration, WhatNoMigrationGivesIsRefusedWithTheReason) {
  EXPECT_EQ(carried({a, b}, {}, {"new", {{"A", 1}}}),
            "\"new A=1\" can't be carried over: it has no value of B, and no migration gives one");
  EXPECT_EQ(carried({a}, {}, {"new", {{"A", 1}, {"Z", 3}}}),
            "\"new A=1 Z=3\" can't be carried over: new has no parameter Z any more");
}

TEST(ConfigMigration, ARenamedParameterKeepsOrTranslatesItsValue) {
  const Config stored{"new", {{"A", 1}, {"OLD", 16}}};
  EXPECT_EQ(carried({a, b}, {renamed("OLD", "B")}, stored), "new A=1 B=16");
  EXPECT_EQ(carried({a, b}, {renamed("OLD", "B", {{16, 8}})}, stored), "new A=1 B=8");
  EXPECT_EQ(changes({a, b}, {renamed("OLD", "B", {{16, 8}})}, stored),
            std::vector<std::string>{"OLD=16 is now B=8"});
  EXPECT_EQ(carried({a, b}, {renamed("OLD", "B", {{32, 8}})}, stored),
            "\"new A=1 OLD=16\" can't be carried over: no value of B means what OLD=16 meant");
}

TEST(ConfigMigration, ARemovedParameterMustHaveHadTheValueThatIsLeft) {
  EXPECT_EQ(carried({a}, {removed("OLD", 0)}, {"new", {{"A", 1}, {"OLD", 0}}}), "new A=1");
  EXPECT_EQ(carried({a}, {removed("OLD", 0)}, {"new", {{"A", 1}, {"OLD", 1}}}),
            "\"new A=1 OLD=1\" can't be carried over: OLD=1 was removed; kernels now do what OLD=0 "
            "did");
}

TEST(ConfigMigration, AVariantKeepsItsConfigurationsUnderANewName) {
  EXPECT_EQ(carried({a}, {formerly("old")}, {"old", {{"A", 1}}}), "new A=1");
  EXPECT_EQ(changes({a}, {formerly("old")}, {"old", {{"A", 1}}}),
            std::vector<std::string>{"variant old renamed new"});
}

TEST(ConfigMigration, StepsApplyInTheirOrder) {
  const std::vector<ConfigMigration> steps{added("X", 3), renamed("X", "Y"), removed("Z", 1),
                                           renamed("Y", "B")};
  EXPECT_EQ(carried({a, b}, steps, {"new", {{"A", 1}}}), "new A=1 B=3");
  EXPECT_EQ(carried({a, b}, steps, {"new", {{"X", 4}, {"Z", 1}, {"A", 1}}}), "new A=1 B=4");
  EXPECT_EQ(carried({a, b}, steps, {"new", {{"A", 1}, {"Y", 5}}}), "new A=1 B=5");
}

TEST(ConfigMigration, AParameterThatThisLanguageLacksIsNotAdded) {
  EXPECT_EQ(carried({a, b}, {added("B", 1), added("GLSL_ONLY", 2)}, {"new", {{"A", 1}}}),
            "new A=1 B=1");
}

TEST(ConfigMigration, AnotherOrderOfParametersIsTheSameConfiguration) {
  EXPECT_EQ(carried({a, b}, {}, {"new", {{"B", 2}, {"A", 1}}}), "new A=1 B=2");
}

/// Returns devices that together have every variant and parameter, one for each language at least.
std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all{architecture_info("sm_90").value(),
                              architecture_info("gfx942").value(),
                              architecture_info("gfx950").value()};
  DeviceInfo vulkan = architecture_info("sm_90").value();
  vulkan.backend = Api::vulkan;
  vulkan.language = Language::glsl;
  all.push_back(vulkan);
  return all;
}

/// Returns a problem of the operation: its first typical size, in its first types.
Problem typical(const Operation& operation) {
  const TypicalSize& size = operation.sizes.front();
  Problem problem{operation.name,
                  operation.dtypes.front().in,
                  operation.dtypes.front().out,
                  size.attributes,
                  {}};
  for (std::size_t i = 0; i < size.extents.size(); ++i) {
    problem.dims.emplace_back(operation.dimensions[i].name, size.extents[i]);
  }
  return problem;
}

std::vector<std::string> listed_forms() {
  std::ifstream file(GRETA_TEST_DATA "/config_forms.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

TEST(ConfigForms, EveryFormOfTodayIsListed) {
  const auto lines = listed_forms();
  const std::set<std::string> known(lines.begin(), lines.end());
  EXPECT_EQ(known.size(), lines.size()) << "a line occurs twice";
  for (const Operation& operation : catalog()) {
    for (const DeviceInfo& device : devices()) {
      const Instance instance(operation, typical(operation), device);
      auto variants = instance.alternatives();
      if (has_vendor(operation)) {  // which is not among them
        variants.push_back(operation.variant(vendor_variant).space(instance.shape(), device));
      }
      for (const Alternative& variant : variants) {
        std::string form = operation.name + " " + variant.variant;
        for (const Parameter& parameter : variant.parameters) form += " " + parameter.name;
        EXPECT_TRUE(known.contains(form))
            << "add this line to tests/data/config_forms.txt:\n"
            << form << "\nand, if it replaces another one, an entry to the variant's migrations";
      }
    }
  }
}

/// Returns a configuration of this form with values of today's parameters, and `other` for those
/// that do not exist today.
Config sample_of(const std::string& form, const Instance& instance, int other) {
  std::istringstream words(form);
  std::string operation;
  Config config;
  words >> operation >> config.variant;
  for (std::string name; words >> name;) {
    int value = other;
    for (const Alternative& variant : instance.alternatives()) {
      for (const Parameter& parameter : variant.parameters) {
        if (parameter.name == name) value = parameter.values.front();
      }
    }
    config.values.emplace_back(name, value);
  }
  return config;
}

/// Returns an empty text if a configuration of this form can be carried over on some device, else a
/// reason.
std::string why_lost(const std::string& form) {
  const Operation* const operation = catalog().find(form.substr(0, form.find(' ')));
  if (operation == nullptr) return "there is no such operation";
  std::string why;
  for (const DeviceInfo& device : devices()) {
    const Instance instance(*operation, typical(*operation), device);
    for (int other = 0; other <= 64; ++other) {
      const auto done = instance.migrate(sample_of(form, instance, other));
      if (done) return {};
      why = done.failure().message;
    }
  }
  return why;
}

TEST(ConfigForms, EveryListedFormIsCarriedOver) {
  for (const std::string& form : listed_forms()) {
    EXPECT_EQ(why_lost(form), "") << "configurations of earlier versions would be lost:\n"
                                  << form << "\nadd an entry to the variant's migrations";
  }
  EXPECT_NE(why_lost("gemm gemv THREADS"), "");
  EXPECT_NE(why_lost("gemm no_such_variant THREADS"), "");
}

}  // namespace
}  // namespace greta::test::config_migration_test
