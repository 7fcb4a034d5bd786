#include "kernels/described/launch_reader.hpp"

#include <array>

#include "kernels/described/fields.hpp"
#include "kernels/described/names.hpp"
#include "kernels/described/rules.hpp"

namespace greta::kernels {
namespace described {
namespace {

constexpr std::array<std::string_view, 3> languages{"hip", "cuda", "glsl"};

bool has_tolerance(const Tolerance& tolerance) {
  return tolerance.absolute > 0 || tolerance.relative > 0 || tolerance.ulp > 0;
}

Tolerance read_tolerance(const PlacedJson& object) {
  constexpr std::array<std::string_view, 3> keys{"absolute", "relative", "ulp"};
  allow_keys(object, keys);
  if (object.members()->empty()) fail(object, "must have absolute, relative or ulp");
  Tolerance tolerance;
  for (const auto& [key, value] : *object.members()) {
    const double number = read_number(value);
    if (number < 0) fail(value, "must not be negative");
    if (key == "relative" && number >= 1) {
      fail(value,
           fmt::format("must be below 1, not {}: 0 would be within it everywhere", value.shown()));
    }
    (key == "absolute"   ? tolerance.absolute
     : key == "relative" ? tolerance.relative
                         : tolerance.ulp) = number;
  }
  return tolerance;
}

/// Whether a reference has keys of a kernel.
bool has_launch(const PlacedJson& object) {
  const auto& members = *object.members();
  return std::any_of(members.begin(), members.end(), [](const auto& member) {
    constexpr std::array<std::string_view, 4> others{"function", "tolerance", "small", "inputs"};
    return std::find(others.begin(), others.end(), member.first) == others.end();
  });
}

}  // namespace

SourceLanguage read_language(const PlacedJson& value) {
  return static_cast<SourceLanguage>(read_word(value, languages));
}

std::string shortest_reference() {
  return "{\"entry\": \"naive\", \"grid\": \"n\", \"workgroup\": 1, \"arguments\": [...], "
         "\"tolerance\": {\"relative\": 1e-6}}";
}

std::vector<DescribedLaunch> LaunchReader::read_launches(const PlacedJson& object,
                                                         SourceLanguage language) const {
  std::vector<DescribedLaunch> launches;
  constexpr std::array<std::string_view, 5> keys{"entry", "grid", "workgroup", "shared_bytes",
                                                 "arguments"};
  const PlacedJson* const several = object.find("launches");
  if (several == nullptr) {
    launches.push_back(read_launch(object, language));
    return launches;
  }
  for (const std::string_view key : keys) {
    if (const auto* one = object.find(key))
      fail(*one, "is of each launch where there are \"launches\"");
  }
  for (const PlacedJson& item : read_array(*several, 64)) {
    allow_keys(item, keys);
    launches.push_back(read_launch(item, language));
  }
  if (launches.empty()) fail(*several, "has no launch");
  return launches;
}

DescribedLaunch LaunchReader::read_launch(const PlacedJson& object, SourceLanguage language) const {
  DescribedLaunch launch;
  const PlacedJson& entry = need(object, "entry", "the name of the kernel's function");
  launch.entry = read_text(entry, 512);
  const bool glsl = language == SourceLanguage::glsl;
  if (glsl && !is_name(launch.entry)) fail(entry, "must be the name of a function in GLSL");
  launch.grid = read_three(need(object, "grid", "the number of workgroups, up to three formulas"));
  launch.workgroup =
      read_three(need(object, "workgroup", "the number of threads, up to three formulas"));
  launch.shared_bytes = Formula::constant({std::int64_t{0}});
  if (const auto* bytes = object.find("shared_bytes")) {
    if (glsl) fail(*bytes, "GLSL declares all shared memory in the source");
    launch.shared_bytes = read_formula(*bytes, names_);
  }
  const PlacedJson& arguments =
      need(object, "arguments", "names of operands and scalars, in the order of the function");
  for (const PlacedJson& item : read_array(arguments, 256)) {
    launch.arguments.push_back(read_text(item));
    if (!is_argument(launch.arguments.back())) {
      fail(item, fmt::format("{} is neither an operand nor a scalar", item.shown()));
    }
  }
  return launch;
}
std::array<Formula, 3> LaunchReader::read_three(const PlacedJson& value) const {
  const Formula one = Formula::constant({std::int64_t{1}});
  std::array<Formula, 3> three{one, one, one};
  if (value.items() == nullptr) {
    three[0] = read_formula(value, names_);
    return three;
  }
  const auto& items = read_array(value, 3);
  if (items.empty()) fail(value, "has no formula");
  for (std::size_t i = 0; i < items.size(); ++i) three[i] = read_formula(items[i], names_);
  return three;
}
bool LaunchReader::is_argument(const std::string& name) const {
  const auto named = [&](const auto& one) { return one.name == name; };
  return (has_workspace_ && name == "workspace") ||
         std::any_of(description_.operands.begin(), description_.operands.end(), named) ||
         std::any_of(description_.scalars.begin(), description_.scalars.end(), named);
}

void LaunchReader::read_reference(const PlacedJson& object, DescribedReference& reference) const {
  constexpr std::array<std::string_view, 14> keys{
      "language", "source",    "entry",        "grid", "workgroup", "arguments", "launches",
      "golden",   "tolerance", "shared_bytes", "on",   "function",  "small",     "inputs"};
  allow_keys(object, keys);
  if (const auto* small = object.find("small")) {
    reference.small = static_cast<std::size_t>(read_integer(*small, 0, 64));
  }
  if (const auto* inputs = object.find("inputs")) {
    reference.inputs = static_cast<std::size_t>(read_integer(*inputs, 1, 64));
  }
  const PlacedJson* const tolerance = object.find("tolerance");
  if (tolerance != nullptr || !has_tolerance(reference.tolerance)) {
    reference.tolerance = read_tolerance(need(object, "tolerance", "absolute, relative or ulp"));
  }
  if (const auto* function = object.find("function")) {
    reference.kind = DescribedReference::Kind::function;
    if (has_launch(object)) fail(object, "a function needs nothing but a tolerance");
    reference.function = read_name(*function);
    return;
  }
  if (const auto* golden = object.find("golden")) {
    reference.kind = DescribedReference::Kind::golden;
    if (object.members()->size() != 2) fail(object, "golden files need nothing but a tolerance");
    reference.small = 0;  // they are of one problem and its inputs
    reference.inputs = 1;
    reference.golden = read_file_names(*golden);
    const auto outputs = std::count_if(description_.operands.begin(), description_.operands.end(),
                                       [](const auto& o) { return o.role != Role::input; });
    if (reference.golden.size() != static_cast<std::size_t>(outputs)) {
      fail(*golden, fmt::format("must be a file for each of {} outputs", outputs));
    }
    return;
  }
  reference.language = description_.language;
  if (const auto* other = object.find("language")) reference.language = read_language(*other);
  reference.sources = description_.sources;
  if (const auto* source = object.find("source")) reference.sources = read_sources(*source);
  if (reference.language != description_.language && object.find("source") == nullptr) {
    fail(object, "\"source\" is missing: another language needs another file");
  }
  if (const auto* on = object.find("on")) {
    constexpr std::array<std::string_view, 2> places{"host", "device"};
    reference.on_device = read_word(*on, places) == 1;
    if (reference.on_device && (reference.language == SourceLanguage::glsl) !=
                                   (description_.language == SourceLanguage::glsl)) {
      fail(*on, "the device that runs the kernel does not run the reference's language");
    }
  }
  reference.launches = read_launches(object, reference.language);
}

}  // namespace described

std::string_view to_string(SourceLanguage language) {
  return described::languages[static_cast<std::size_t>(language)];
}

}  // namespace greta::kernels
