// The lens, the library phasor_lens: measures of what position does inside the encoder, from
// recorded activations.
//
// Every function computes in double from its arguments: arrays, a trace, or an encoder to run. Its
// numbers depend on the number of threads no more than the encoder's states do. It throws
// InvalidArgument if shapes do not fit. Each header gives the formulas and their sources.
//
//   lens/table.h       a table of position vectors by itself
//   lens/properties.h  all of its numbers, beside those of random tables
//   lens/split.h       hidden states split into position, token and context, or position and text
//   lens/residual.h    position in the residual stream, layer by layer
//   lens/probe.h       how well a linear map reads the position off a state
//   lens/attention.h   position in attention, head by head
//   lens/scores.h      the first block's attention scores, taken apart
//   lens/observe.h     all of these and more, as tables, of texts in one run or two
#pragma once

#include "phasor/lens/attention.h"
#include "phasor/lens/observe.h"
#include "phasor/lens/probe.h"
#include "phasor/lens/properties.h"
#include "phasor/lens/residual.h"
#include "phasor/lens/scores.h"
#include "phasor/lens/split.h"
#include "phasor/lens/table.h"
