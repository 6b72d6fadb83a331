// infer positions [TABLE [TABLE]]: tables of position vectors, by themselves.
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "infer/cli/options.h"
#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/positions/report.h"
#include "infer/render/page.h"
#include "phasor/version.h"

namespace infer {
namespace {

constexpr const char* kPositionsFooter = R"(A TABLE is one of
  paper, marian, t2t, fairseq, opennmt   a sinusoidal table of that layout, also
                                         sinusoidal:paper (default: paper)
  random                                 numbers between -1 and 1, to compare with
  FILE.npy, FILE.safetensors             a matrix [positions, width]
  DIR or NAME                            a model's table

Sections (--only; some are on the page of --html and in --json alone):
{}
Examples:
  infer positions
  infer positions --length 100 --width 512 --only image
  infer positions paper learned --only properties,against
  infer positions marian --width 512 --length 100 --html page.html)";

struct PositionsArguments {
  CommonOptions common;
  std::vector<std::string> tables;
  TableSize size;
  std::vector<std::string> only;
  std::string save, html;
  bool csv = false;
};

std::optional<int> parse_arguments(CommandLine& line, PositionsArguments& arguments) {
  std::string sections;
  for (const TableSection& section : table_sections()) {
    sections += fmt::format("  {:<11} {}{}\n", section.name, section.hint,
                            section.title.empty() ? " (--html and --json)" : "");
  }
  line.footer(fmt::format(kPositionsFooter, sections));
  line.words("TABLE", "one table or two, see below", arguments.tables);
  line.option("--length", "T", "positions (default: 16, or all of a model or file, up to 512)",
              arguments.size.length, Range{1, kMaxTableSize});
  line.option("--width", "D", "columns of a computed table (default: 32)", arguments.size.width,
              Range{1, kMaxTableSize});
  line.option("--base", "N", "n of a sinusoidal table (default: 10000)", arguments.size.base);
  add_only(line, "sections", arguments.only);
  line.option("--save", "FILE", "write the table to .npy or .safetensors", arguments.save);
  add_html(line, arguments.html);
  line.flag("--csv", "print the values, a line for each position", arguments.csv);
  add_common(line, kLinks | kPrint, arguments.common);
  return line.parse();
}

void check(const PositionsArguments& arguments) {
  const std::vector<std::string>& tables = arguments.tables;
  if (tables.size() > 2)
    throw UsageError(fmt::format("{} tables were given ({}); at most two are shown", tables.size(),
                                 fmt::join(tables, ", ")));
  const bool computes = tables.empty() || std::ranges::any_of(tables, is_computed);
  if (!computes && (arguments.size.width || arguments.size.base))
    throw UsageError("--width and --base are for computed tables; models and files have their own");
  if (arguments.csv && arguments.common.json)
    throw UsageError("--csv and --json exclude each other; give one of them");
  if (tables.size() == 2 && (arguments.csv || !arguments.save.empty()))
    throw UsageError("--csv and --save are for one table; give one");
  if (!arguments.save.empty()) check_save_path(arguments.save, true);
}

/// The sections that are named, or else all that can be shown.
std::vector<TableSection> parse_sections(const std::vector<std::string>& only, size_t num_tables) {
  const std::span<const TableSection> all = table_sections();
  const std::vector<std::string_view> names = names_of(all);
  const auto why_not = [&](size_t i) {
    const bool lacks = all[i].of_two && num_tables < 2;
    return std::string(lacks ? "give two tables, like infer positions paper learned" : "");
  };
  std::vector<TableSection> sections;
  for (const size_t i : picked(only, names, why_not)) sections.push_back(all[i]);
  return sections;
}

/// The tables asked for, equally long. One that is computed takes the other one's size.
std::vector<NamedTable> find_tables(const PositionsArguments& arguments) {
  std::vector<std::string> names = arguments.tables;
  if (names.empty()) names.emplace_back("paper");
  std::vector<NamedTable> tables(names.size());
  TableSize size = arguments.size;
  for (const bool computed : {false, true}) {  // what is computed comes last
    for (size_t i = 0; i < names.size(); ++i) {
      if (is_computed(names[i]) != computed) continue;
      tables[i] =
          find_table(names[i], computed ? size : arguments.size, load_options(arguments.common));
      if (!size.length) size.length = tables[i].rows();
      if (!size.width) size.width = tables[i].width();
    }
  }
  const int64_t rows = std::ranges::min_element(tables, {}, &NamedTable::rows)->rows();
  for (NamedTable& table : tables) {
    if (table.rows() > rows && !arguments.common.quiet)
      report_note(fmt::format("{}: the first {} of {} positions, as many as the other table has",
                              table.name, rows, table.rows()));
    table = first_rows(std::move(table), rows);
  }
  return tables;
}

void save_table(const NamedTable& table, const std::filesystem::path& path) {
  const std::vector<float> values(table.values.values.begin(), table.values.values.end());
  const SavedTensor tensor("positions", {table.rows(), table.width()},
                           std::span<const float>(values));
  save("--save", path, std::span(&tensor, 1),
       {{"table", table.description},
        {"first_position", fmt::format("{}", table.first_position)},
        {"version", PHASOR_VERSION}});
}

}  // namespace

int positions(CommandLine& line) {
  PositionsArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  check(arguments);
  const bool quiet = arguments.common.quiet;
  const std::vector<TableSection> asked = parse_sections(arguments.only, arguments.tables.size());
  const std::vector<TableSection> on_page = parse_sections({}, arguments.tables.size());
  std::optional<Page> page;
  if (!arguments.html.empty()) page.emplace(arguments.html);
  const PositionsReport report = [&] {
    ProgressLine progress(quiet);
    return measure(page ? on_page : asked, find_tables(arguments), {progress.stages()});
  }();
  if (!arguments.save.empty()) save_table(report.tables[0], arguments.save);
  if (page) {
    JsonWriter data;
    data.object([&] {
      data.member("version", PHASOR_VERSION);
      data.key("tables").raw(to_json(report, on_page));
    });
    page->write(data.take(), quiet);
  }
  Output output;
  if (arguments.csv) {
    output.write(to_csv(report.tables[0]));
  } else if (arguments.common.json) {
    output.write(to_json(report, asked) + "\n");
  } else {
    output.show(to_text(report, asked, output));
  }
  return 0;
}

}  // namespace infer
