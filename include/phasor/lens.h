// The lens: numbers that say what position does inside the encoder, from recorded activations.
//
// Every function is pure: it computes in double from the arrays or the trace it is given, does not
// depend on threads, and throws InvalidArgument where shapes do not fit. Each header gives the
// formulas and where they come from.
//
//   lens/table.h       a table of position vectors by itself
//   lens/residual.h    position in the residual stream, layer by layer
//   lens/attention.h   position in attention
//   lens/order.h       what reordering the tokens does
//   lens/prediction.h  how well masked tokens are predicted
//   lens/claims.h      what the tutorials say, held against what is computed
#pragma once

#include "phasor/lens/attention.h"
#include "phasor/lens/claims.h"
#include "phasor/lens/order.h"
#include "phasor/lens/prediction.h"
#include "phasor/lens/residual.h"
#include "phasor/lens/table.h"
