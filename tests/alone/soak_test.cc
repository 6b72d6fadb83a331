// Memory stays where it is, however many sentences pass; also in a long life of mixed use: texts of
// all kinds, policies, observers, errors, cancellations and models that come and go.
// $PHASOR_SOAK_TEXTS says how many texts; the tests take a few thousand.
#include "tests/support/bert_folder.h"
#include "tests/support/resident_memory.h"

namespace phasor {
namespace {

int64_t open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : std::distance(begin(all), end(all));
}

/// Letters, words, other scripts, bytes that are no text, and now and then a very long word.
std::string any_text(std::mt19937& random) {
  const char* const parts[] = {
      "a",        "b ",   " ",  "ab",   "[MASK]",   "\xe4\xb8\xad", "\xf0\x9f\x98\x80",
      "\xcc\x81", "\xff", "\t", "Tom ", "\xc3\xa9", "##",           "1,000 "};
  std::string text;
  for (auto size = random() % 60; size > 0; --size) text += parts[random() % std::size(parts)];
  if (random() % 100 == 0) text.append(random() % 5000, 'x');
  return text;
}

struct Reader : Observer {
  bool wants(Hook, int64_t layer) const override { return layer == 0; }
  void observe(const HookEvent& event) override { sum += event.values[0]; }
  float sum = 0;
};

class Life {
 public:
  /// About `count` texts, of which the first are run by a model loaded anew.
  void live(int64_t count) {
    encoder_.reset();
    for (int64_t done = 0; done < count;) {
      std::vector<std::string> texts(1 + random_() % 16);
      for (std::string& text : texts) text = any_text(random_);
      use(texts);
      done += std::ssize(texts);
    }
  }

  int64_t done() const { return done_; }
  int64_t refused() const { return refused_; }

 private:
  void use(const std::vector<std::string>& texts) {
    if (!encoder_ || random_() % 200 == 0) {
      const auto folder = random_() % 4 == 0 ? bundled_model("none") : fs::path(folder_.path());
      encoder_.emplace(Model::load(folder, {.copy = random_() % 2 == 0}),
                       EncoderOptions{.threads = 1 + static_cast<int>(random_() % 2),
                                      .precision = static_cast<Precision>(random_() % 3)});
    }
    const auto overflow = static_cast<Overflow>(random_() % 5);
    try {
      switch (random_() % 6) {
        case 0: {
          Reader reader;
          encoder_->encode(texts, {.observer = &reader, .overflow = overflow});
          break;
        }
        case 1: {
          std::stop_source stop;
          stop.request_stop();
          encoder_->encode(texts, {.stop = stop.get_token()});
          FAIL() << "it did not stop";
        }
        case 2:
          encoder_->classify(texts);
          break;
        case 3:
          encoder_->encode_ids(std::vector<int32_t>{static_cast<int32_t>(random_() % 70)});
          break;
        default:
          encoder_->embed(texts);
      }
      ++done_;
    } catch (const Error&) {  // too long, empty, cancelled, an id that there is not
      ++refused_;
    }
  }

  std::mt19937 random_{7};
  BertFolder folder_{{"yes", "no"}};
  std::optional<Encoder> encoder_;
  int64_t done_ = 0, refused_ = 0;
};

TEST(SoakTest, MemoryAndDescriptorsStayWhereTheyAre) {
  const char* const asked = std::getenv("PHASOR_SOAK_TEXTS");
  const int64_t count = asked != nullptr ? std::atoll(asked) : 4000;
  Life life;
  life.live(count / 5);
  const int64_t descriptors = open_descriptors(), memory = resident_memory();
  // A leak of 16 bytes a text grows each time; what changes by chance does not.
  int growths = 0;
  for (int pass = 0; pass < 8; ++pass) {
    const int64_t before = heap_in_use();
    life.live(count / 10);
    growths += heap_in_use() - before >= 16 * (count / 10) ? 1 : 0;
  }
  EXPECT_LT(growths, 8);
  EXPECT_GT(life.done(), count / 40);
  EXPECT_GT(life.refused(), count / 40);
  EXPECT_EQ(open_descriptors(), descriptors);
  if (asked != nullptr)
    std::printf("%ld texts: resident %.1f MB, then %.1f MB\n", static_cast<long>(count),
                static_cast<double>(memory) / 1e6, static_cast<double>(resident_memory()) / 1e6);
}

}  // namespace
}  // namespace phasor
