// Texts observed one by one, before and after interventions: infer TEXT… and infer observe.
#pragma once

#include <string>

#include "infer/cli/input_options.h"

namespace infer {

struct ObserveArguments {
  InputOptions texts;
  ViewOptions views;
  Interventions interventions;
  std::string file;       // whose lines are observed as one; empty: there is none
  bool is_plain = false;  // without a command: a text in one table
};

/// Returns the exit code.
int observe_texts(const ObserveArguments& arguments);

}  // namespace infer
