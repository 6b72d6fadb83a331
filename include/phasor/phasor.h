// All of phasor's public API in one include.
#pragma once

#include "phasor/config.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/executor.h"
#include "phasor/hooks.h"
#include "phasor/lens.h"
#include "phasor/model.h"
#include "phasor/names.h"
#include "phasor/pooling.h"
#include "phasor/positions.h"
#include "phasor/precision.h"
#include "phasor/progress.h"
#include "phasor/safetensors.h"
#include "phasor/tokenizer.h"
#include "phasor/trace.h"
#include "phasor/version.h"
