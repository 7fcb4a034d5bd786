#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/launch_work.hpp"
#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"
#include "kernels/templates/attention/shape.hpp"

/// Attention whose rows are the queries of all heads that share a KV head, so that each key is read
/// once for all of them: latent_attention, where a key's first elements are its value, and
/// tree_attention. Kernels are in this folder, and each operation's folder has their entries.
namespace greta::kernels::latent {

struct Shape : attention::Shape {
  bool shared = false;  ///< a value is the first v_dim elements of its key
  bool tree = false;    ///< bits say which of the new keys a query sees

  /// Returns the number of rows that share a KV head.
  std::int64_t rows() const { return queries * group(); }
  /// Returns the number of words of a query's bits.
  std::int64_t words() const { return ceil_div(queries, std::int64_t{32}); }
  /// Returns the elements that are read for a key and its value.
  std::int64_t read_elements() const { return shared ? dim : dim + v_dim; }
};

/// Return the shape of a problem of latent_attention, and of one of tree_attention.
Shape latent_shape(const Problem& problem);
Shape tree_shape(const Problem& problem);

/// Returns the operands: Q, the cache or K and V, lengths, then if there are any the block table
/// and the tree's bits, the output and its log-sum-exps.
std::vector<TensorSpec> tensors(const Shape& shape);
/// Returns the products of a query and the keys that it sees, and each operand's bytes once. A
/// tree's queries see half of its keys.
Work least_work(const Shape& shape);

// Parts of both variants. `rows` are those of a workgroup's tile.

/// Returns the number of tiles of all sequences' KV heads. Each has SPLIT workgroups.
auto readers_of(const Shape& shape, const auto& rows) {
  return ceil_div(shape.rows(), rows) * (shape.batch * shape.kv_heads);
}
/// Returns the constraints that tiles fit the grid and are not mostly idle, that there are keys to
/// divide, and that the device can hold what slices leave.
std::vector<Constraint> rows_constraints(const Shape& shape, const DeviceInfo& device,
                                         const Expression& rows);
std::vector<Division> rows_divisions(const Shape& shape, const Config& config, std::int64_t rows);
/// Returns the work without the fields that depend on how a variant computes.
LaunchWork rows_work(const Shape& shape, const Config& config, std::int64_t rows);
/// Returns whether workgroups divide the keys of all sequences evenly (stream_keys.hip).
bool streams(const Config& config);
/// Groups of workgroups that do: each has a workgroup for each tile of a sequence's rows.
struct Stream {
  std::int64_t groups, tiles;

  std::int64_t workgroups() const { return groups * tiles; }
  /// Returns the mean number of sequences that a group has keys of.
  double parts(const Shape& shape) const;
  /// Returns the mean number of groups that have keys of a sequence.
  double sharers(const Shape& shape) const;
};
/// Returns as many groups as run at once, at least one.
Stream stream_of(const Shape& shape, const DeviceInfo& device, std::int64_t rows);
/// Returns what rows_work() does, for such workgroups.
LaunchWork streamed_work(const Shape& shape, const DeviceInfo& device, const Config& config,
                         std::int64_t rows);
/// Returns whether a second launch joins the slices of a tile where there are several, and its work
/// for so many slices.
bool has_join(const Config& config);
LaunchWork join_work(const Shape& shape, const Config& config, std::int64_t rows, double slices);
/// Returns the launch of the kernel `path`, and that of FOLDER/join if slices have one.
LaunchPlan rows_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                     const Config& config, Defines defines, std::int64_t rows,
                     std::int64_t threads);
/// Returns SPLIT: what fills each compute unit with `of_unit` workgroups, of slices of at least
/// `keys`.
int split_for(const Shape& shape, const DeviceInfo& device, std::int64_t rows, int of_unit = 2,
              std::int64_t keys = 128);

/// Make the variants. `folder` has the kernels' entries.
Variant matrix(std::string_view folder);  ///< with matrix instructions
Variant warpgroups();                     ///< of latent_attention, with those of warpgroups (sm_90)
Variant pingpong();                       ///< the same, of two warpgroups that alternate
Variant vector(std::string_view folder);  ///< without

}  // namespace greta::kernels::latent
