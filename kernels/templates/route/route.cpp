#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

constexpr int most_held = 32;   ///< logits of a thread, in registers
constexpr int most_picks = 8;   ///< picks whose logits a thread keeps
constexpr int most_lanes = 32;  ///< threads that share a token: a wave of every device

struct RouteShape {
  explicit RouteShape(const Problem& problem)
      : in(problem.dtype),
        tokens(problem.dim("tokens")),
        experts(problem.dim("experts")),
        top_k(problem.dim("top_k")),
        sigmoid(problem.attribute("score", "softmax") == "sigmoid"),
        renormalise(problem.attribute("renormalise", "yes") == "yes"),
        bias(problem.attribute("bias", "none") == "expert"),
        scale(finite_number(problem.attribute("scale", "1")).value()),
        groups(whole_number(problem.attribute("groups", "1")).value()),
        top_groups(whole_number(problem.attribute("top_groups", "1")).value()) {}

  DType in;
  std::int64_t tokens, experts, top_k;
  bool sigmoid, renormalise, bias;
  float scale;
  std::int64_t groups, top_groups;
};

std::vector<TensorSpec> tensors(const Problem& problem) {
  const RouteShape s(problem);
  std::vector<TensorSpec> list{{"logits", Role::input, s.in, s.tokens, s.experts}};
  if (s.bias) list.push_back({"bias", Role::input, DType::f32, 1, s.experts});
  list.push_back({"ids", Role::output, DType::i32, s.tokens, s.top_k});
  list.push_back({"weights", Role::output, DType::f32, s.tokens, s.top_k});
  return list;
}

/// A comparison for each logit and pick; a difference, an exponential, a sum and a quotient for
/// each score that is needed: those of all experts with a bias, or of a softmax over all of them.
Work work(const Problem& problem) {
  const RouteShape s(problem);
  const bool all = s.bias || (!s.sigmoid && !s.renormalise);
  const std::int64_t scores = all ? s.experts : s.top_k;
  return {static_cast<double>(s.tokens * (s.experts * s.top_k + 4 * scores)),
          operand_bytes(tensors(problem))};
}

/// Logits as those of a trained router: from -16 to 16.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  return spec.name == "logits" ? random_activations(problem, spec, seed)
                               : random_tensor(spec, seed);
}

/// Gives the biases of some groups of experts a special value, and one of them another one, so
/// that groups differ in what their largest keys are and not in the others.
void mix_in_special_groups(HostTensor& bias, std::int64_t groups, std::mt19937_64& random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double values[] = {-infinity, infinity, std::numeric_limits<double>::quiet_NaN()};
  const auto size = static_cast<std::uint64_t>(bias.spec.cols / groups);
  const auto store = [&](std::uint64_t expert, double value) {
    store_element(bias.spec.dtype, bias.data.data(), expert, value);
  };
  for (std::uint64_t first = 0; first < size * static_cast<std::uint64_t>(groups); first += size) {
    // Experts that all others come before are the usual ones: else groups without them win.
    const std::uint64_t kind = uniform_below(random, 8);
    if (kind == 0) continue;
    const double most = values[kind < 6 ? 0 : kind - 5];
    for (std::uint64_t i = 0; i < size; ++i) store(first + i, most);
    if (uniform_below(random, 2) == 0) continue;
    store(first + uniform_below(random, size), values[uniform_below(random, std::size(values))]);
  }
}

/// Mixes in rows of all magnitudes, NaN and infinities; also biases of these.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  HostTensor& logits = inputs[0];
  mix_in_adversarial_rows(logits, magnitudes_of(problem.dtype), seed);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  std::mt19937_64 random(mix64(seed));
  const auto replace = [&](HostTensor& tensor, std::int64_t row, std::uint64_t of_eight) {
    const double one = values[uniform_below(random, std::size(values))];
    const double other =
        uniform_below(random, 2) == 0 ? one : values[uniform_below(random, std::size(values))];
    for (std::int64_t col = 0; col < tensor.spec.cols; ++col) {
      if (uniform_below(random, 8) >= of_eight) continue;
      store_element(tensor.spec.dtype, tensor.data.data(),
                    static_cast<std::size_t>(row * tensor.spec.cols + col),
                    uniform_below(random, 2) == 0 ? one : other);
    }
  };
  for (std::int64_t row = 0; row < logits.spec.rows; ++row) {
    if (uniform_below(random, 4) == 0) replace(logits, row, 1 + uniform_below(random, 8));
  }
  if (inputs.size() < 2) return;
  const std::int64_t groups = RouteShape(problem).groups;
  if (groups > 1 && uniform_below(random, 2) == 0) {
    mix_in_special_groups(inputs[1], groups, random);
  } else if (uniform_below(random, 2) == 0) {
    replace(inputs[1], 0, 1 + uniform_below(random, 8));
  }
}

Result<void> check(const Problem& problem) {
  const std::int64_t experts = problem.dim("experts"), top_k = problem.dim("top_k");
  const auto bad = [](const char* field, std::int64_t value, std::string reason) {
    return bad_field(field, std::to_string(value), std::move(reason));
  };
  if (top_k > experts) {
    return bad("top_k", top_k, fmt::format("must not exceed the {} experts", experts));
  }
  const RouteShape s(problem);
  if (experts % s.groups != 0) {
    return bad("groups", s.groups, fmt::format("must divide the {} experts", experts));
  }
  const std::int64_t size = experts / s.groups;
  if (s.top_groups > s.groups) {
    return bad("top_groups", s.top_groups, fmt::format("must not exceed the {} groups", s.groups));
  }
  if (s.top_groups * size < top_k) {
    return bad(
        "top_groups", s.top_groups,
        fmt::format("{} groups of {} experts have fewer than {}", s.top_groups, size, top_k));
  }
  if (s.groups > 1 && s.bias && size < 2) {
    return bad("groups", s.groups, "with a bias, a group has at least two experts");
  }
  return {};
}

/// Returns the vectors of a token that a thread holds.
std::int64_t items_of(const RouteShape& shape, const Config& config) {
  return ceil_div(shape.experts, std::int64_t{config["LANES"]} * config["VEC"]);
}

Alternative space(const RouteShape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t experts = shape.experts;
  Alternative a{"lanes",
                {{"THREADS", {64, 128, 256, 512}},
                 {"LANES", {1, 2, 4, 8, 16, most_lanes}},
                 {"VEC", vector_widths(shape.in)}},
                {}};
  a.constraints = {
      storage_constraint(shape.in, DType::f32, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"alignment", fmt::format("VEC must divide experts, which is {}", experts),
       experts % p["VEC"] == 0},
      {"idle_lanes",
       fmt::format("LANES vectors of VEC must be fewer than twice the {} experts", experts),
       p["LANES"] * p["VEC"] < 2 * experts},
      {"held",
       fmt::format("a thread holds at most {} of the {} logits of a token", most_held, experts),
       {{"LANES", "VEC"},
        [shape](const Config& c) { return items_of(shape, c) * c["VEC"] <= most_held; }}},
      {"picks", fmt::format("a thread keeps at most {} of {} picks", most_picks, shape.top_k),
       shape.top_k <= most_picks * p["LANES"]},
      {"grid", fmt::format("the tokens are more than {} workgroups", groups),
       ceil_div(shape.tokens, p["THREADS"] / p["LANES"]) <= groups}};
  return a;
}

/// Eight logits to a thread, as few threads keep a token's picks close together.
std::vector<Config> defaults(const RouteShape& shape, const DeviceInfo&) {
  const std::int64_t share = ceil_div(std::max(shape.experts, shape.top_k), 8);
  // A lane alone indexes its experts, for which AMD's compilers take memory.
  const std::int64_t least = shape.experts > 1 ? 2 : 1;
  const int lanes =
      static_cast<int>(std::min<std::int64_t>(most_lanes, std::max(least, next_power(share))));
  int vec = widest_vector(shape.in, shape.experts, shape.experts);
  while (vec > 1 && std::int64_t{lanes} * vec > shape.experts) vec /= 2;
  std::vector<Config> configs;
  for (const int threads : {128, 64}) {
    configs.push_back({"lanes", {{"THREADS", threads}, {"LANES", lanes}, {"VEC", vec}}});
  }
  if (shape.tokens * lanes <= 64) std::swap(configs[0], configs[1]);
  return configs;
}

LaunchPlan plan(const RouteShape& shape, const DeviceInfo& device, const Config& config) {
  const bool glsl = device.language == Language::glsl;
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", DType::f32}});
  add_parameters(defines, config);
  add_pack(defines, device, "X", shape.in, config["VEC"]);
  const auto define = [&](const char* name, std::int64_t value) {
    defines.emplace_back(name, std::to_string(value));
  };
  define("ITEMS", items_of(shape, config));
  define("EXPERTS", shape.experts);
  define("TOP_K", shape.top_k);
  define("SIGMOID", shape.sigmoid ? 1 : 0);
  define("RENORMALISE", shape.renormalise ? 1 : 0);
  define("BIAS", shape.bias ? 1 : 0);
  define("GROUPS", shape.groups);
  define("TOP_GROUPS", shape.top_groups);
  if (glsl) {
    define("F16_ARITHMETIC", 0);
    define("SUBGROUP", whole_subgroups(device, config["THREADS"]));
  }
  std::vector<Argument> arguments{OperandArgument{0}, OperandArgument{1}, OperandArgument{2}};
  if (shape.bias) arguments.emplace_back(OperandArgument{3});
  arguments.emplace_back(static_cast<std::uint32_t>(shape.tokens));
  arguments.emplace_back(shape.scale);

  LaunchPlan plan;
  plan.sources.push_back(
      kernel_source(device, "route/lanes", defines, config["THREADS"], arguments));
  if (glsl) {
    plan.sources.back().required_subgroup_size =
        static_cast<std::uint32_t>(whole_subgroups(device, config["THREADS"]));
  }
  const std::int64_t groups =
      ceil_div(shape.tokens, std::int64_t{config["THREADS"] / config["LANES"]});
  plan.launches.push_back(
      {0, grid(device, plan.sources[0], static_cast<std::uint64_t>(groups)), arguments});
  return plan;
}

std::vector<Division> divisions(const RouteShape& shape, const Config& config) {
  return {{"tokens", shape.tokens, config["THREADS"] / config["LANES"]},
          {"experts", shape.experts, std::int64_t{config["LANES"]} * config["VEC"]}};
}

std::vector<Attribute> attributes() {
  return {{.name = "score",
           .help = "what an expert's score is: its share of the softmax over all experts, or the "
                   "sigmoid of its logit",
           .fallback = "softmax",
           .allowed = {"softmax", "sigmoid"}},
          {.name = "renormalise",
           .help = "yes: the weights of a token are its experts' scores over their sum",
           .fallback = "yes",
           .allowed = {"yes", "no"}},
          {.name = "bias",
           .help = "expert: experts are selected by score + bias, and weighted by score",
           .fallback = "none",
           .allowed = {"none", "expert"}},
          number_attribute("scale", "factor of the weights", "1", {"1", "2.5"}),
          {.name = "groups",
           .help = "groups of neighbouring experts, of which the best top_groups have a token's "
                   "experts: those of the largest score, or with a bias of the largest sum of two",
           .fallback = "1",
           .allowed = {"1", "2", "4", "8", "16"}},
          {.name = "top_groups",
           .help = "groups that have a token's experts",
           .fallback = "1",
           .allowed = {"1", "2", "3", "4", "8"}}};
}

}  // namespace

Operation make_route() {
  Operation t;
  t.name = "route";
  t.summary = "the top_k experts of each token by its logits, and their weights";
  t.bound =
      "experts exactly, or with a bias those whose score + bias is within its error; a weight's "
      "exponentials within u (6 + 5 |x|) each, u for each sum, 5u for each quotient, u for scale; "
      "u = 2^-24";
  t.dimensions = {
      run_time_tokens("rows of logits"),
      {.name = "experts", .help = "columns of logits", .most = 1024, .examples = {8, 60, 64, 256}},
      {.name = "top_k",
       .help = "experts of each token",
       .most = 64,
       .examples = {1, 2, 4, 6, 8, 10}}};
  t.attributes = attributes();
  for (const DType type : converted_types()) t.dtypes.push_back({type, DType::f32});
  t.sizes = {{{8192, 128, 8}},
             {{1, 8, 2}},
             {{64, 256, 8}, {{"score", "sigmoid"}, {"bias", "expert"}, {"scale", "2.5"}}},
             {{128, 256, 8},
              {{"score", "sigmoid"},
               {"bias", "expert"},
               {"scale", "2.5"},
               {"groups", "8"},
               {"top_groups", "4"}}},
             {{1001, 60, 4}, {{"renormalise", "no"}}}};
  t.shape = [](const Problem& problem) { return ProblemShape(RouteShape(problem)); };
  t.variants = {make_variant<RouteShape>(
      "lanes", "LANES threads share a token; they agree on one expert after the other", space, plan,
      defaults, divisions)};
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = route_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
