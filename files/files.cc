#include "files/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "files/file_kinds.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxValueText = 60;

/// Numbers that Python writes into JSON, where there are none of them. The value of one is of
/// nlohmann's binary type, which no text has, with the subtype 3 · line + its place in this list.
constexpr std::string_view kLiterals[] = {"NaN", "Infinity", "-Infinity"};
constexpr uint64_t kNumLiterals = std::size(kLiterals);

/// Where the rest of a text begins with a literal, its place in kLiterals; else kNumLiterals.
uint64_t literal_of(std::string_view rest) {
  return std::ranges::find_if(kLiterals, [&](auto name) { return rest.starts_with(name); }) -
         std::begin(kLiterals);
}

bool is_one_of(std::string_view characters, std::string_view text, size_t place) {
  return place < text.size() && characters.find(text[place]) != characters.npos;
}

json literal_value(uint64_t subtype) { return json::binary(std::vector<uint8_t>(), subtype); }

/// Writes -0, behind blanks, over the literals outside strings. Returns the subtypes of their
/// values and 0 for each integer -0 that was there, in order.
std::vector<uint64_t> take_literals(std::string& text, int64_t most) {
  std::vector<uint64_t> subtypes;
  uint64_t line = 1;
  for (size_t i = 0; i < text.size() && std::ssize(subtypes) < most; ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (text[i] == '\n') {
      ++line;
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    } else if (const uint64_t which = literal_of(rest); which < kNumLiterals) {
      subtypes.push_back(line * kNumLiterals + which);
      text.replace(i, kLiterals[which].size(), kLiterals[which].size(), ' ');
      i += kLiterals[which].size() - 1;
      text.replace(i - 1, 2, "-0");
    } else if (rest.starts_with("-0") && !is_one_of(".eE", rest, 2) &&
               (i == 0 || !is_one_of("eE", text, i - 1))) {
      subtypes.push_back(0);
    }
  }
  return subtypes;
}

/// Builds the value that a parser reads. (nlohmann's own builder, with a callback, scans the whole
/// parent at the end of each object.)
class JsonBuilder : public nlohmann::json_sax<json> {
 public:
  JsonBuilder(std::string_view what, int64_t max_values, std::span<const uint64_t> literals = {})
      : what_(what), max_values_(max_values), literals_(literals) {}

  JsonDocument take() { return std::move(document_); }
  [[noreturn]] void refuse_syntax() const { fail("not valid JSON from byte {} on", error_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override {
    if (value != 0 || literals_.empty()) return add(value);
    const uint64_t subtype = literals_.front();
    literals_ = literals_.subspan(1);
    return add(subtype == 0 ? json(value) : literal_value(subtype));
  }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in text
  bool start_object(size_t) override { return open(json::object()); }
  bool start_array(size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    auto& object = open_.back()->get_ref<json::object_t&>();
    const auto [place, is_new] = object.emplace(std::move(key), nullptr);
    if (!is_new) fail("the key {} is there twice", value_text(place->first));
    next_ = &place->second;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    error_ = position;
    return false;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
    refuse<ModelError>("{}: {}", what_, fmt::format(what, std::forward<Args>(args)...));
  }
  bool add(json value) {
    if (++count_ > max_values_) fail("more than {} JSON values", max_values_);
    if (!open_.empty() && open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      next_ = &open_.back()->back();
    } else {
      *next_ = std::move(value);
    }
    return true;
  }
  bool open(json value) {
    if (open_.size() >= kMaxDepth) fail("JSON nested more than {} deep", kMaxDepth);
    add(std::move(value));
    open_.push_back(next_);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string_view what_;
  const int64_t max_values_;
  std::span<const uint64_t> literals_;  // that are still to come, see take_literals()
  size_t error_ = 0;
  JsonDocument document_;
  json* next_ = &*document_;  // the place for a value that is not in an array
  std::vector<json*> open_;   // the enclosing arrays and objects
  int64_t count_ = 0;
};

JsonDocument must_be_object(JsonDocument parsed, std::string_view what) {
  if (!parsed->is_object())
    refuse<ModelError>("{}: {} where a JSON object {{…}} must be", what, value_text(*parsed));
  return parsed;
}

/// Takes all children away, from the inside.
void empty(json& value) noexcept {
  if (!value.is_structured()) return;
  for (json& child : value) empty(child);
  value.clear();
}

/// The beginning of a string, in quotation marks and ASCII.
std::string quoted(const std::string& text) {
  return json(text.substr(0, kMaxValueText)).dump(-1, ' ', true, json::error_handler_t::replace);
}

/// Appends the beginning of `value`'s text, at least kMaxValueText characters if it has as many.
void append_text(const json& value, std::string& text) {
  if (value.is_structured()) {
    text += value.is_array() ? '[' : '{';
    for (auto item = value.begin(); item != value.end() && text.size() <= kMaxValueText; ++item) {
      if (item != value.begin()) text += ',';
      if (value.is_object()) text += quoted(item.key()) + ':';
      append_text(*item, text);
    }
    text += value.is_array() ? ']' : '}';
  } else if (value.is_binary()) {
    const uint64_t subtype = value.get_binary().subtype();
    text += fmt::format("{} (line {})", kLiterals[subtype % kNumLiterals], subtype / kNumLiterals);
  } else if (value.is_string()) {
    text += quoted(value.get_ref<const std::string&>());
  } else {
    text += value.dump();
  }
}

bool is_in_proc(const std::filesystem::path& path) {
  struct statfs system {};
  return statfs(path.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/// Throws ModelError where `error` leaves open where a link leads: the system may follow one whose
/// path is too long to be told. A missing file is no such error.
void refuse_unknown(const std::filesystem::path& file, const std::error_code& error) {
  if (!error || error == std::errc::no_such_file_or_directory ||
      error == std::errc::not_a_directory)
    return;
  refuse<ModelError>("{}: where it leads cannot be told: {}", file.string(), error.message());
}

/// Throws ModelError where the way from `folder` to `file`, of links and folders, passes /proc,
/// whose links lead to what this process has opened, and whose files say what it holds.
void refuse_link_to_proc(const std::filesystem::path& folder, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // the kernel's own limit
  std::error_code error;
  fs::path at = folder.empty() ? "." : folder;
  fs::path rest = file.lexically_relative(folder);
  for (int links = 0; !rest.empty() && links <= kMostLinks;) {
    const fs::path next = at / *rest.begin();
    rest = rest.lexically_relative(*rest.begin());
    if (rest == ".") rest.clear();
    const bool is_link = fs::is_symlink(next, error);
    refuse_unknown(file, error);
    if (!is_link) {
      at = next;
    } else if (is_in_proc(at)) {
      break;
    } else {
      const fs::path target = fs::read_symlink(next, error);
      refuse_unknown(file, error);
      if (target.is_absolute()) at = "/";
      rest = rest.empty() ? target.relative_path() : target.relative_path() / rest;
      ++links;
    }
  }
  if (!is_in_proc(at)) return;  // a missing file is reported by its reader
  refuse<ModelError>(
      "{}: it is a link into /proc, which is never followed; put a copy of the file in its place",
      file.string());
}

/// Adds the names in `folder`, `before` in front of each. Returns errno, 0 for success.
int add_names(const std::filesystem::path& folder, const std::string& before,
              std::vector<std::string>& names) {
  errno = 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(opendir(folder.c_str()), closedir);
  while (const dirent* const entry = opened != nullptr ? readdir(opened.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.push_back(before + entry->d_name);
    errno = 0;
  }
  if (errno == ENOMEM) throw std::bad_alloc();
  return errno;
}

}  // namespace

JsonDocument::~JsonDocument() { empty(root_); }

PlainFile::PlainFile(const std::filesystem::path& file) : file_(file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
    fail(is_there(file) ? "a link to a file that is not there" : "no such file");
  if (descriptor < 0) fail_reading();
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    fail("not a plain file");
  }
  descriptor_ = descriptor;
  size_ = status.st_size;
}

PlainFile::~PlainFile() { close(descriptor_); }

size_t PlainFile::read(std::span<char> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(descriptor_, &bytes[done], bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading();
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string PlainFile::read(int64_t count) const {
  std::string bytes(std::min(count, size_), '\0');
  bytes.resize(read(std::span(bytes)));  // shorter if it was truncated meanwhile
  return bytes;
}

void PlainFile::fail(const std::string& what) const {
  refuse<ModelError>("{}: {}", file_.string(), what);
}

void PlainFile::fail_reading() const {
  fail("cannot be read: " + std::generic_category().message(errno));
}

std::pair<uint64_t, uint64_t> file_id(const std::filesystem::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

std::vector<std::string> list_folder(const std::filesystem::path& folder, int depth,
                                     std::error_code* error) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  const std::error_code problem(add_names(folder, "", names), std::generic_category());
  if (error != nullptr) *error = problem;
  if (error == nullptr && problem)
    refuse<ModelError>("{}: cannot be read: {}", folder.string(), problem.message());
  for (size_t i = 0; i < names.size(); ++i) {  // those that are added here, too
    if (std::ranges::count(names[i], '/') >= depth) continue;
    const fs::path inner = folder / names[i];
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(inner, ignored)))
      add_names(inner, names[i] + "/", names);
  }
  std::ranges::sort(names, {}, [](const std::string& name) { return fs::path(name); });
  return names;
}

bool is_file(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored);
}

bool is_there(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::symlink_status(file, error).type() !=
         std::filesystem::file_type::not_found;
}

void refuse_link_out(const ModelPath& folder, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  refuse_link_to_proc(folder, file);  // where a file may have no name to compare
  if (folder.follow_links()) return;
  std::error_code error;
  const fs::path& named = folder;
  const fs::path home = fs::canonical(named.empty() ? "." : named, error);
  const fs::path target = error ? fs::path() : fs::canonical(file, error);
  refuse_unknown(file, error);
  if (error) return;  // reported by its reader
  const auto lies_in = [&target](const fs::path& outer) {
    return std::mismatch(outer.begin(), outer.end(), target.begin(), target.end()).first ==
           outer.end();
  };
  if (lies_in(home)) return;
  for (fs::path above = home; above.has_relative_path(); above = above.parent_path()) {
    if (above.filename() == "snapshots" && lies_in(above.parent_path() / "blobs")) return;
  }
  refuse<ModelError>(
      "{}: it is a link to {}, outside its folder; put a copy of the file in its place, or, if you "
      "trust the folder, load it with follow_links (infer: --follow-links)",
      file.string(), target.string());
}

const std::filesystem::path& within_folder(const ModelPath& file) {
  if (std::error_code ignored; std::filesystem::is_symlink(file, ignored))
    refuse_link_out({file.parent_path(), file.follow_links()}, file);
  return file;
}

std::string read_model_file(const ModelPath& file, int64_t max_bytes) {
  return read_file(within_folder(file), max_bytes);
}

std::string read_file(const std::filesystem::path& file, int64_t max_bytes) {
  const PlainFile opened(file);
  if (opened.size() > max_bytes) {
    refuse<ModelError>("{}: {} bytes; at most {} are read", file.string(), opened.size(),
                       max_bytes);
  }
  return opened.read(opened.size());
}

JsonDocument parse_json(std::string_view text, std::string_view what, int64_t max_values) {
  JsonBuilder builder(what, max_values);
  if (!json::sax_parse(text, &builder)) builder.refuse_syntax();
  return builder.take();
}

JsonDocument parse_json_object(std::string_view text, std::string_view what) {
  return must_be_object(parse_json(text, what), what);
}

JsonDocument read_json(const ModelPath& file, int64_t max_bytes) {
  std::string text = read_model_file(file, max_bytes);
  refuse_other_kind(text, file);
  const std::string what = file.string();
  const int64_t most = max_bytes > kMaxConfig ? kMaxValues : kMaxConfigValues;
  JsonBuilder builder(what, most);
  if (json::sax_parse(text, &builder)) return builder.take();
  builder.take();  // frees what was read
  const std::vector<uint64_t> literals = take_literals(text, most);
  JsonBuilder again(what, most, literals);
  if (!json::sax_parse(text, &again)) again.refuse_syntax();
  return again.take();
}

json literal_at(std::string_view text, size_t position) {
  const size_t at = std::min(text.size(), position - 1);
  const bool negative = at > 0 && text[at - 1] == '-';
  const uint64_t which = literal_of(text.substr(at - (negative ? 1 : 0)));
  if (which == kNumLiterals) return nullptr;
  const auto line = static_cast<uint64_t>(1 + std::ranges::count(text.substr(0, at), '\n'));
  return literal_value(line * kNumLiterals + which);
}

JsonDocument read_json_object(const ModelPath& file, int64_t max_bytes) {
  return must_be_object(read_json(file, max_bytes), file.string());
}

std::string value_text(const json& value) {
  std::string text;
  append_text(value, text);
  if (text.size() > kMaxValueText) text = text.substr(0, kMaxValueText - 3) + "...";
  return text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) {
    sizes.push_back(size == kAnyRows ? "any" : std::to_string(size));
  }
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

const char* why_not_opened(int error) {
  return error == ENOENT ? "no such file" : std::strerror(error);
}

}  // namespace phasor::internal
