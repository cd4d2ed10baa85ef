// What can go wrong in an exchange. Each becomes an error of its own in Python.
#pragma once

#include <stdexcept>
#include <string>

namespace roundelay::engine {

enum class Trouble {
    lost,        // a participant has ended
    mismatch,    // participants were asked to do different things
    broken,      // an earlier trouble, here or elsewhere
    late,        // nothing has come for as long as the caller allows
    interrupted,  // a signal's handler has raised an error here
    changed       // bytes are not those that were sent
};

class Failure : public std::runtime_error {
   public:
    Failure(Trouble trouble, int participant, const std::string& text)
        : std::runtime_error(text), trouble_(trouble), participant_(participant) {}

    Trouble trouble() const { return trouble_; }
    int participant() const { return participant_; }  // whose fault it is; -1: nobody's

   private:
    Trouble trouble_;
    int participant_;
};

}  // namespace roundelay::engine
