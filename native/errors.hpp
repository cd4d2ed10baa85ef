// What is wrong with the caller's input; becomes roundelay.errors.RoundelayError in Python.
#pragma once

#include <stdexcept>
#include <string>

namespace roundelay {

class BadInput : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

}  // namespace roundelay
