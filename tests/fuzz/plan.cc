// The plan of a corpus in shards, its index, and the records of its shards.
#include "infer/commands/shard/plan.h"

#include <fstream>

#include "files/corpus/fingerprint.h"
#include "infer/commands/shard/shard_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/run_program.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kPlanFiles[] = {"plan.json",
                                           "index",
                                           "000/shard-000000.done",
                                           "000/shard-000000.npy",
                                           "000/shard-000000.jsonl",
                                           "000/shard-000001.done"};

std::string fingerprint_of_text(std::string_view text) {
  infer::Fingerprint fingerprint;
  fingerprint.add(std::as_bytes(std::span(text)));
  return fingerprint.text();
}

bool run_plan(std::string_view bytes) {
  static const Folder folder;
  Parts parts = parts_of(bytes, "plan.json", kPlanFiles);
  static std::string before = "plan.npy";  // the index of the last input
  std::error_code ignored;
  std::filesystem::remove(folder.path() / before, ignored);
  // The plan names its index by the fingerprint of what the index holds.
  const std::string index = parts["index"];
  const std::string fingerprint = fingerprint_of_text(index);
  std::string& json = parts["plan.json"];
  if (const size_t at = json.find("INDEX"); at != json.npos) json.replace(at, 5, fingerprint);
  before = "plan." + fingerprint + ".npy";
  folder.write(before, index);
  folder.write(parts, kPlanFiles);
  bool verified = false;  // a record
  survive([&] {
    const infer::Plan made = infer::Plan::read(folder.path());
    const infer::ShardFiles files(made);
    static_cast<void>(files.left_text());
    for (int64_t shard = 0; shard < std::min<int64_t>(made.size(), 3); ++shard) {
      static_cast<void>(made.lines_of(shard));
      survive([&] {
        const auto record = infer::ShardRecord::read(made, shard);
        if (!record) return;
        record->verify(made, shard);
        verified = true;
      });
    }
  });
  return verified;
}

std::vector<std::string> plan_seeds() {
  const Folder folder;
  std::vector<std::string> inputs;
  for (const auto kind : {infer::VectorFormat::Kind::kNpy, infer::VectorFormat::Kind::kJsonLines}) {
    infer::Plan plan;
    plan.folder = folder.path() / std::to_string(inputs.size());
    plan.format.kind = kind;
    plan.format.width = 2;
    plan.inputs = {{"/corpus.txt", 40, 3}};
    plan.lines = 3;
    plan.lines_per_shard = 2;
    plan.shards = {{{0, 0, 0}, 7}, {{0, 20, 2}, 8}};
    plan.write();
    Parts parts;
    for (const auto& entry : std::filesystem::directory_iterator(plan.folder)) {
      const std::string bytes = read_text_file(entry.path());
      parts[entry.path().filename() == "plan.json" ? "plan.json" : "index"] = bytes;
    }
    std::filesystem::create_directories(plan.group_of(0));
    const std::string shard =
        plan.format.header(2) + plan.format.rows(std::vector<float>{1, 2, 3, 4}, 1);
    std::ofstream(plan.file_of(0)) << shard;
    infer::ShardRecord record;
    record.lines = 2;
    record.bytes = std::ssize(shard);
    record.input = plan.input_of(0);
    record.xxh64 = infer::fingerprint_of(plan.file_of(0));
    record.plan = plan.id;
    record.arithmetic = "avx2";
    record.host = "here";
    record.write(plan, 0);
    parts["000/shard-000000.done"] = read_text_file(plan.record_of(0));
    parts["000/" + plan.file_of(0).filename().string()] = shard;
    std::string& json = parts["plan.json"];
    const std::string fingerprint = fingerprint_of_text(parts["index"]);
    json.replace(json.find(fingerprint), fingerprint.size(), "INDEX");
    inputs.push_back(input_of(parts));
  }
  return inputs;
}

}  // namespace

Fuzzer plan_fuzzer() {
  return {.name = "plan", .run = run_plan, .seeds = plan_seeds, .words = words(R"(
===\sindex\n ===\s000/shard-000000.done\n ===\s000/shard-000000.npy\n
===\s000/shard-000000.jsonl\n "phasor_shards" "lines" "lines_per_shard" "shards" "width" "inputs"
"index" "INDEX" "format" "jsonl" "npy" "safetensors" "options" "made_with" 68719476736
9223372036854775807 18446744073709551615 -1)")};
}

}  // namespace phasor::fuzz
