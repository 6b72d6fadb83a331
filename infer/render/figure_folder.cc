// Writing figures, one file each.
#include "infer/render/figure_folder.h"

#include <fmt/format.h>

#include <cctype>
#include <span>

#include "infer/files/temporary_file.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {

FigureFolder::FigureFolder(std::filesystem::path folder, bool quiet)
    : folder_(std::move(folder)), quiet_(quiet) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error || !std::filesystem::is_directory(folder_)) {
    throw phasor::InvalidArgument(
        fmt::format("--svg: cannot make the folder {}: {}", folder_.string(),
                    error ? error.message() : "there is a file of that name"));
  }
}

void FigureFolder::write(const std::string& name, const std::string& svg) const {
  const std::filesystem::path path = folder_ / (name + ".svg");
  TemporaryFile file("--svg", path);
  file.write(std::as_bytes(std::span(svg)));
  file.commit();
  if (!quiet_) report_note("wrote " + path.string());
}

std::string file_name(const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!plain && c != '.' && c != '-' && c != '_') c = '_';
  }
  return name;
}

}  // namespace infer
