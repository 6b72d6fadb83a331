// A folder that figures are written to.
#pragma once

#include <filesystem>
#include <string>

namespace infer {

class FigureFolder {
 public:
  /// Makes the folder where there is none; throws InvalidArgument where that cannot be. Unless
  /// `quiet`, every file is named on stderr.
  FigureFolder(std::filesystem::path folder, bool quiet);

  /// Writes NAME.svg, over an earlier one; throws InvalidArgument saying why not.
  void write(const std::string& name, const std::string& svg) const;

 private:
  std::filesystem::path folder_;
  bool quiet_;
};

/// `text` as part of a file's name: letters, digits, points, "-" and "_", the rest as "_".
std::string file_name(const std::string& text);

}  // namespace infer
