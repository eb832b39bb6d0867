// SPDX-License-Identifier: MIT
// unlock() against cancel against the stop of a loop, as a protocol: what include/weft/sync/mutex_core.h,
// include/weft/sync/waiter.h and a loop that is stopped do, one step per shared access. Memory orders are
// Relacy's business (mutex_test.cc); here every step is atomic and in order.
//
//   spin -a mutex.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m200000
//
// Every process must reach its end: a lock that is lost, or a waiter that is forgotten, is an invalid end
// state. WITHOUT_PASSING_ON leaves out that a Notified wait that is cancelled gives the lock to the next,
// WITHOUT_NOTIFY that it ends only when its notify() has arrived (N3), WITHOUT_UNLINK that a Waiting one
// leaves the list, WITHOUT_CLEARING that the last to leave it takes kWaiters along (M1), WITHOUT_LOCK that
// a cancel looks at the state under state_mu_, WITHOUT_L12 that a loop ends only after the notify()
// of a wait that was cancelled: with each of them the search must fail, which script/check_spin_models sees to.

#define LOOPS  2
#define TASKS  3
#define NOBODY TASKS
#define home(t) (t == 0 -> 0 : 1)  // the first alone, two with each other

#ifdef WITHOUT_L12
#define has_ended(t) (phase[t] == ended || state[t] == withdrawn)
#else
#define has_ended(t) (phase[t] == ended)
#endif
#define gone(loop, t) (home(t) != loop || (has_ended(t) && !kick_sent[t]))

// The word: 0, or the owner's loop and what is besides.
#define kWaiters 1
#define owned_by(loop) ((loop + 1) << 1)

mtype = { notify, kick };                                          // what a loop is sent
mtype = { idle, waiting, notified, resumed, withdrawn };           // WaitState
mtype = { fresh, suspended, inside, ended };                       // of a task

byte word = 0;
bool state_mu = false;
chan waiters = [TASKS] of { byte };

mtype state[TASKS] = idle;
mtype phase[TASKS] = fresh;
bool cancel_asked[TASKS];
bool kick_sent[TASKS];  // and has not arrived: the task's state outlives it
byte inside_count = 0;
byte visits = 0;
byte given_up = 0;

bool stop_asked[LOOPS];
bool closed[LOOPS];
chan inbox[LOOPS] = [2 * TASKS] of { mtype, byte };

inline take_state_mu() {
  atomic { !state_mu -> state_mu = true }
}
inline leave_state_mu() {
  atomic {
    assert(((word & kWaiters) != 0) == (len(waiters) > 0));  // M1
    assert(word != 0 || len(waiters) == 0);                  // M3
    state_mu = false
  }
}

// Waiter::notify(): to its own loop or to another.
inline send(what, whom) {
  atomic {
    assert(!closed[home(whom)]);   // L12
    assert(phase[whom] != ended || what == kick);
    inbox[home(whom)]!what,whom
  }
}

// For the owner, whose loop it is.
inline pass_on(loop, next) {
  do
  :: take_state_mu();
     if
     :: len(waiters) > 0 ->
        atomic {  // the word is written once; the rest is state_mu_'s
          waiters?next;
          state[next] = notified;
          word = owned_by(home(next)) | (len(waiters) > 0 -> kWaiters : 0);
          leave_state_mu()
        };
        send(notify, next);
        break
     :: else -> leave_state_mu()
     fi;
     if
     :: atomic { word == owned_by(loop) -> word = 0 }; break
     :: atomic { word != owned_by(loop) -> assert(word == (owned_by(loop) | kWaiters)) }
     fi
  od
}

// The end of a wait or of a visit.
inline end(t) {
  atomic { phase[t] = ended; state[t] = idle }
}

inline give_up(t) {
  atomic { given_up++; phase[t] = ended; state[t] = idle }
}

inline enter(t) {
  atomic {
    assert((word & ~kWaiters) == owned_by(home(t)));
    state[t] = resumed;
    phase[t] = inside;
    inside_count++;
    assert(inside_count == 1);
    visits++
  }
}

inline lock(t) {
  if
  :: atomic { word == 0 -> word = owned_by(home(t)) }; enter(t)
  :: atomic { word != 0 -> skip };
     take_state_mu();
     do
     :: atomic { word == 0 -> word = owned_by(home(t)); leave_state_mu() };
        enter(t);
        break
     :: atomic {
          word != 0 -> word = word | kWaiters;
          state[t] = waiting;
          phase[t] = suspended;
          waiters!t;
          leave_state_mu()
        };
        break
     od
  fi
}

inline unlock(t, next) {
  atomic { inside_count-- };
  if
  :: atomic { word == owned_by(home(t)) -> word = 0 }
  :: atomic { word != owned_by(home(t)) -> assert(word == (owned_by(home(t)) | kWaiters)) };
     pass_on(home(t), next)
  fi;
  end(t)
}

// await_cancel(), on the home loop. `was` is what it saw.
inline cancel_wait(t, was, next) {
#ifndef WITHOUT_LOCK
  take_state_mu();
#endif
  was = state[t];
  if
  :: was == waiting ->
#ifndef WITHOUT_UNLINK
     waiters??eval(t);
#endif
#ifndef WITHOUT_CLEARING
     if
     :: len(waiters) == 0 -> word = word & ~kWaiters  // M2
     :: else
     fi;
#endif
#ifndef WITHOUT_LOCK
     leave_state_mu();
#endif
     give_up(t)
  :: else ->
     assert(was == notified);
#ifndef WITHOUT_LOCK
     leave_state_mu();
#endif
#ifndef WITHOUT_PASSING_ON
     pass_on(home(t), next);
#endif
#ifdef WITHOUT_NOTIFY
     give_up(t)
#else
     atomic { given_up++; state[t] = withdrawn }
#endif
  fi
}

inline kicked(t, was, next) {
  if
  :: phase[t] == suspended && (state[t] == waiting || state[t] == notified) ->
     cancel_wait(t, was, next)
  :: else  // it has not begun, and will see it; or has gone on, and the guard unlocks
  fi
}

proctype loop(byte me) {
  byte t, next;
  mtype was;
  bool stopping = false;

turn:
  atomic { t = 0; next = 0; was = idle };
  if
  // stop() cancels what is here.
  :: stop_asked[me] && !stopping ->
     stopping = true;
     t = 0;
     do
     :: t < TASKS ->
        if
        :: home(t) == me && phase[t] != ended && !cancel_asked[t] ->
           cancel_asked[t] = true;
           kicked(t, was, next)
        :: else
        fi;
        t++
     :: else -> break
     od
  :: atomic { inbox[me]?kick,t -> kick_sent[t] = false };
     kicked(t, was, next)
  :: inbox[me]?notify,t ->
     assert(phase[t] == suspended);  // its frame is there
     if
     :: state[t] == notified -> enter(t)
     :: else -> assert(state[t] == withdrawn); end(t)
     fi
  // A task begins, or has been inside for long enough.
  :: atomic { home(0) == me && (phase[0] == fresh || phase[0] == inside) -> t = 0 }; goto step
  :: atomic { home(1) == me && (phase[1] == fresh || phase[1] == inside) -> t = 1 }; goto step
  :: atomic { home(2) == me && (phase[2] == fresh || phase[2] == inside) -> t = 2 }; goto step
  // L12: not before its last task is gone, one that waits for a kick or a notify() included.
  :: atomic { gone(me, 0) && gone(me, 1) && gone(me, 2) -> goto close }
  fi;
  goto turn;
step:
  if
  :: phase[t] == inside -> unlock(t, next)
  :: phase[t] == fresh && cancel_asked[t] -> give_up(t)
  :: else -> lock(t)
  fi;
  goto turn;
close:
  atomic {
    assert(len(inbox[me]) == 0);
    closed[me] = true
  }
}

// Cancels whom it likes, from anywhere.
proctype canceller() {
  byte t = 0;
  do
  :: t < TASKS ->
     if
     :: atomic {
          phase[t] != ended && !cancel_asked[t] ->
          cancel_asked[t] = true;
          kick_sent[t] = true
        };
        send(kick, t)
     :: skip
     fi;
     t++
  :: else -> break
  od
}

// Stops the loop of two, or not.
proctype stopper() {
  if
  :: stop_asked[1] = true
  :: skip
  fi
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < LOOPS -> run loop(i); i++
    :: else -> break
    od;
    run canceller();
    run stopper()
  };
  // Everyone has ended: the lock is nobody's, and nobody was forgotten.
  (_nr_pr == 1);
  assert(word == 0 && len(waiters) == 0 && !state_mu);
  assert(inside_count == 0);
  assert(visits + given_up == TASKS)
}
