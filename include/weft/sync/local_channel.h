// SPDX-License-Identifier: MIT
#pragma once
// weft::LocalChannel<T>: a Channel<T> for the tasks of one loop, without atomic operations.
//
//     LocalChannel<Job> jobs(64);   // all that Channel<Job> has, with the same rules
//
// A send and a receive of an item are 5.0 ns, those of a Channel 5.9 on the machine that the README's
// figures are from (bench: channel_one_loop): where neither counts, use Channel, which can be shared.
//
// Threads        the first loop that uses it is the only one: use on another, or off any loop after
//                that, ends the process with a message that names both. Off any loop it may be filled
//                before.
#include "weft/sync/channel.h"

namespace weft::inline v0 {

template <class T>
using LocalChannel = Channel<T, detail::OnOneLoop>;

}  // namespace weft::inline v0
