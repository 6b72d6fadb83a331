// An application's loop: loads a model once and embeds lists of texts on two threads.
//
//   embed [FOLDER|NAME]
#include <phasor/phasor.h>

#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Job {
  std::vector<std::string> texts;
  std::vector<float> vectors = {};       // [texts, width]
  std::exception_ptr failure = nullptr;  // null: done
};

/// Runs on a thread of its own; an exception is kept for the thread that joins it.
void run(const phasor::Encoder& encoder, Job& job) {
  try {
    job.vectors.resize(job.texts.size() * encoder.embedding_width());
    const auto result = encoder.embed(job.texts, {.output = job.vectors});
    for (int64_t i = 0; i < result.size(); ++i) {
      const auto dropped = static_cast<int>(result.reports.dropped_tokens[i]);
      if (dropped > 0) std::printf("a text lost its last %d tokens\n", dropped);
    }
  } catch (...) {
    job.failure = std::current_exception();
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto model = phasor::Model::load(argc > 1 ? argv[1] : "sinusoidal");
    const phasor::Encoder encoder(model);  // for all threads
    Job jobs[] = {{.texts = {"Tom bit a dog.", "A dog bit Tom.", "It rains."}},
                  {.texts = {"The old man gave the boy a book.", "bytes that are no text: \xff"}}};
    std::jthread other([&] { run(encoder, jobs[1]); });
    run(encoder, jobs[0]);
    other.join();
    for (const Job& job : jobs) {
      if (job.failure) std::rethrow_exception(job.failure);
      std::printf("[%zu, %zu]\n", job.texts.size(), job.vectors.size() / job.texts.size());
    }
  } catch (const phasor::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    switch (error.code()) {
      case phasor::ErrorCode::kNotFound:
      case phasor::ErrorCode::kInvalidModel:  // get the folder again
      case phasor::ErrorCode::kUnsupported:   // choose another model
        return 4;
      default:
        return 3;
    }
  }
}
