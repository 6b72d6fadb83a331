// Embeds the lines of a file and prints the five nearest to a query, with the model's prompts for
// documents and queries:
//   search sentences.txt "Who bit the dog?" all-MiniLM-L6-v2
#include <phasor/phasor.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "search FILE QUERY [MODEL]\n"), 2;
  std::vector<std::string> lines;
  std::ifstream file(argv[1]);
  if (!file) return std::fprintf(stderr, "%s cannot be read\n", argv[1]), 1;
  for (std::string line; std::getline(file, line);) lines.push_back(line);

  const auto model = phasor::Model::load(argc > 3 ? argv[3] : "sinusoidal");
  phasor::Encoder encoder(model, {.precision = phasor::Precision::kFloat32});
  const phasor::Vectors documents =
      encoder.embed(lines, {.role = phasor::TextRole::kDocument});  // [lines, W]
  const phasor::Vectors query =
      encoder.embed({argv[2]}, {.role = phasor::TextRole::kQuery});  // [1, W]
  // documents.dense are all of them, row by row: what an application would save.

  struct Hit {
    double score;
    int64_t line;
  };
  std::vector<Hit> hits;
  for (int64_t i = 0; i < documents.size(); ++i)
    hits.push_back({phasor::cosine(query[0], documents[i]), i});
  const auto end = hits.begin() + std::min<int64_t>(5, std::ssize(hits));
  std::partial_sort(hits.begin(), end, hits.end(),
                    [](const Hit& a, const Hit& b) { return a.score > b.score; });
  for (auto hit = hits.begin(); hit != end; ++hit)
    std::printf("%.3f  %s\n", hit->score, lines[hit->line].c_str());
} catch (const phasor::Error& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
