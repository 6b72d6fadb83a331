// What is served: the paths, and what a request there may say.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/serve/fields.h"
#include "phasor/options.h"

namespace infer {

struct Exchange;

/// A field of a request that is one of TextOptions, by a name or with values of a protocol.
struct Spelling {
  struct Value {
    std::string_view said, means;
    std::string_view field = {};  // which gets the value; empty: the Spelling's
  };

  std::string_view name, field;        // "truncate", "overflow"
  std::span<const Value> values = {};  // {"true", "truncate"}; none: those of phasor/fields.h
};

/// What the body of a request may say.
struct Request {
  std::string_view schema = {};      // its name in /openapi.json; none: there is no body
  std::string_view example = {};     // with the properties that must be there
  std::string_view properties = {};  // of its own, as openapi.cc reads them
  /// The calls and kinds. Of TextOptions the request may say what all of them use: fields with
  /// kUseRequests (phasor/fields.h), how texts are truncated, and `own`.
  uint32_t uses = 0;
  std::span<const Spelling> own = {};
};

/// What is served at some paths. One that ends with "/" takes what begins with it. Of the routes
/// with a path and a method the first is asked, and may ask the others.
struct Route {
  enum Flag : unsigned {
    kOpen = 1,      // needs no key
    kOpenAi = 2,    // errors have OpenAI's shape
    kJsonOnly = 4,  // the type of its body must be application/json
  };

  std::string_view method;
  std::array<std::string_view, 4> paths;
  void (Exchange::*handle)();
  std::string_view summary, answer;  // the answer's schema, or its type: "text/html"
  unsigned flags = 0;
  Request request = {};

  bool is(Flag flag) const { return (flags & flag) != 0; }
  bool takes(std::string_view asked) const {
    return asked == method || (asked == "HEAD" && method == "GET");
  }
  /// Of a path of the row: whether it takes what begins with it.
  static bool is_prefix(std::string_view path) { return path.size() > 1 && path.ends_with('/'); }
  /// Its path at which a request is; empty: none.
  std::string_view path_of(std::string_view asked) const;
};

std::span<const Route> routes();

/// That of the path that takes the method; else one of the path; else null.
const Route* route_of(std::string_view method, std::string_view path);

/// "GET, HEAD, POST": what may be sent to a path.
std::string methods_at(std::string_view path);

/// All that it may say of TextOptions.
std::vector<Spelling> spellings_of(const Request& request);

/// Those of a call with these uses (phasor/fields.h), as the request says them; its own stand in
/// `own`.
phasor::TextOptions read_options(const Request& request, uint32_t uses, const Fields& fields,
                                 const Fields& own);

/// {"type": "boolean", …}
nlohmann::json schema_of(const Spelling& spelling);

/// What GET /openapi.json answers: OpenAPI 3.1.
std::string openapi_json();

}  // namespace infer
