#pragma once

#include "tuner/diagnose/judge.hpp"

namespace greta::tuner {

// Each function offers hypotheses of one kind. All work on the operation's reference or on what was
// computed, and know no kernel.

/// What the runs tell: races, elements that were never written, reads of memory before it was
/// written, and NaN that nothing in the operands explains.
void offer_runs(Judge& judge);
/// Elements that have another element's value: outputs that are transposed, shifted, or written to
/// another tile, head or batch.
void offer_places(Judge& judge);
/// Attributes that the kernel treats as if they had another value: a mask, a scale, a layout.
void offer_attributes(Judge& judge);
/// Operands that are transposed, shifted, read with another stride, exchanged, ignored, negated,
/// or taken from another head or batch.
void offer_operands(Judge& judge);
/// What the runs on changed inputs tell: from which rows and columns of each operand an output's
/// element is computed, and from which it ought to be.
void offer_read_map(Judge& judge);
/// What runs with impulses tell (Response): rows and columns of operands that count in place of
/// others, twice or never.
void offer_responses(Judge& judge);
/// Operands that are read from wrong addresses: elements of another size, neighbours in place of
/// each other, tiles at wrong distances.
void offer_addresses(Judge& judge);
/// Slices of an operand's rows or columns, such as of K, that are left out or count twice.
void offer_slices(Judge& judge);
/// Conversions between f32 and types of 16 bits: rounding, signs, shifts, halves of words, bits
/// that are taken as those of another type.
void offer_conversions(Judge& judge);
/// Sums across lanes in which a step between lanes is missing, or counts lanes twice.
void offer_lane_sums(Judge& judge);
/// Rows whose elements are wrong by a factor that depends on the lane that computes them.
void offer_lane_factors(Judge& judge);
/// Rows that are wrong by a factor or a summand of their own, as those of a wrong sum or mean.
void offer_row_factors(Judge& judge);
/// Attention with other keys: a mask that begins or ends elsewhere, and tiles of keys that are left
/// out or count twice.
void offer_attention(Judge& judge);
/// Rounding of a correct kernel that exceeds the bound at some elements.
void offer_rounding(Judge& judge);
/// Results of too little precision, and those that differ by a constant factor.
void offer_precision(Judge& judge);

}  // namespace greta::tuner
