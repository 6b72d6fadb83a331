// An application's loop: a model is loaded once, and two threads embed lists of texts.
//
//   embed [FOLDER|NAME]
#include <phasor/phasor.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Job {
  std::vector<std::string> texts;
  std::vector<float> vectors = {};  // [texts, width]
  std::string error = {};           // empty: done
};

/// An Encoder belongs to one thread, and so do the errors of what it is given.
void run(phasor::Encoder& encoder, Job& job) {
  job.vectors.resize(job.texts.size() * encoder.embedding_width());
  try {
    const auto result = encoder.embed(job.texts, {.output = job.vectors});
    for (int64_t i = 0; i < result.size(); ++i) {
      const int64_t dropped = result.report(i).dropped_tokens;
      if (dropped > 0)
        std::printf("text %lld lost %lld tokens\n", (long long)i, (long long)dropped);
    }
  } catch (const phasor::Error& error) {
    job.error = error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto model = phasor::Model::load(argc > 1 ? argv[1] : "sinusoidal");
    phasor::Encoder first(model, {.threads = 1});
    phasor::Encoder second = first.replica();  // for the other thread, over the same packed weights
    Job jobs[] = {{.texts = {"Tom bit a dog.", "A dog bit Tom.", "It rains."}},
                  {.texts = {"The old man gave the boy a book.", "bytes that are no text: \xff"}}};
    std::thread other([&] { run(second, jobs[1]); });
    run(first, jobs[0]);
    other.join();
    for (const Job& job : jobs) {
      if (!job.error.empty()) throw phasor::InvalidArgument(job.error);
      std::printf("[%zu, %lld]\n", job.texts.size(), (long long)first.embedding_width());
    }
  } catch (const phasor::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    switch (error.code()) {
      case phasor::ErrorCode::kNotFound:
      case phasor::ErrorCode::kInvalidModel:
        return 4;  // another folder may help
      case phasor::ErrorCode::kUnsupported:
        return 5;  // only another model will
      default:
        return 3;
    }
  }
}
