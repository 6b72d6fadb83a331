// What position does to a text, and what is left of it in a run without positions: the measures of
// infer observe, as numbers.
#include <phasor/lens.h>
#include <phasor/phasor.h>

#include <cstdio>

int main() {
  phasor::Encoder encoder(phasor::Model::load("sinusoidal"));
  const phasor::lens::Run runs[] = {{.encoder = &encoder, .label = "before"},
                                    {.encoder = &encoder,
                                     .label = "after",
                                     .options = {.positions = phasor::Positions::none()},
                                     .edits = {"none"}}};
  const phasor::lens::Text texts[] = {{.text = "Tom bit a dog."},
                                      {.text = "The old man gave the boy a book."}};
  phasor::lens::observe(
      runs, texts, {.views = {"split", "moved"}}, [](std::vector<phasor::lens::Observed>&& text) {
        std::printf("%s\n", text[0].text->c_str());
        for (const auto& row : text[0].tables.at("split").rows) {
          const auto* moved = text[1].tables.at("moved").find(row);
          std::printf("  layer %d: position explains %.3f; without it, 1 - cos %.3f\n",
                      static_cast<int>(row.layer), row.cells[0], moved->cells[0]);
        }
        return true;
      });
}
