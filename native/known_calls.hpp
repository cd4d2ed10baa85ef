// Calls that have been made before, so that making one again takes no look at its arguments.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/task.hpp"
#include "views.hpp"

namespace roundelay {

struct Arguments {
    int collective;
    nanobind::handle input, output;  // or None
    nanobind::handle op, algorithm, dtype;
    int root;
};

struct Known {
    std::shared_ptr<engine::Task> task;
    nanobind::object held[5];  // what the key points to
    bool in_place;
};

class KnownCalls {
   public:
    // The task of a call with the same names, sizes, types and overlap, and its memory; nullptr
    // where there was none.
    const Known* find(const Arguments& arguments, View& in, View& out) const;
    void keep(const Arguments& arguments, const std::shared_ptr<engine::Task>& task,
              bool in_place);

   private:
    struct Key {
        PyObject* names[3];  // op, algorithm, dtype: equal objects, not only equal names
        std::int64_t input_size, output_size, apart;
        std::uint64_t input_type, output_type;
        std::int32_t collective, root;

        bool operator==(const Key& other) const;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };

    static bool make_key(const Arguments& arguments, Key& key, View& in, View& out);

    std::unordered_map<Key, Known, KeyHash> known_;
};

}  // namespace roundelay
