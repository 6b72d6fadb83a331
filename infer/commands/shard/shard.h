// The verbs of infer shard; each parses its own arguments and returns the exit code.
#pragma once

namespace infer {

int shard_plan(int argc, char** argv);
int shard_run(int argc, char** argv);
int shard_status(int argc, char** argv);
int shard_merge(int argc, char** argv);
int shard_slurm(int argc, char** argv);

}  // namespace infer
