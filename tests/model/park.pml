// SPDX-License-Identifier: MIT
// Parking, waking and leaving of an IOContext's workers, as a protocol: what src/run/worker.cc,
// include/weft/run/idle_workers.h and src/run/context_impl.cc do, one step per shared access. Memory
// orders are Relacy's business (task_queue_test.cc); here every step is atomic and in order.
//
//   spin -a park.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m200000
//
// Every process must reach its end: a lost wake-up, or a leave that nobody hears, is an invalid end
// state. WITHOUT_RECHECK leaves out the look at the queues after parking, WITHOUT_HANDOVER the wake-up
// of the next worker by the last that searches, WITHOUT_COUNT the wait for tasks under way when the
// context is stopped: with the first or the third the search must fail, which script/check_spin_models
// sees to. (Without the second no task is lost; but a burst is worked off by one.)

#define WORKERS 2
#define TASKS   2

mtype = { search, stop, leave };

byte queued = 0;      // fresh tasks, in whichever queue
byte live = 0;        // tasks given and not ended
byte searching = 0;   // K1, with mutex
byte parked_count = 0;
bool parked[WORKERS];
bool stop_asked = false;
bool main_done = false;
byte ran = 0;
byte cancelled = 0;
bool closed[WORKERS];

chan inbox[WORKERS] = [4] of { mtype };
chan first_woken = [4] of { bit };  // the wake fd of worker 0, written by others

// Someone added a task. The hint is read first, without the lock.
inline notify(whom, i) {
  whom = WORKERS;
  if
  :: searching == 0 && parked_count > 0 ->
     atomic {
       if
       :: searching == 0 && parked_count > 0 ->
          i = 0;
          do
          :: i < WORKERS && parked[i] -> whom = i; break
          :: i < WORKERS && !parked[i] -> i++
          od;
          parked[whom] = false;
          parked_count--;
          searching++
       :: else
       fi
     }
  :: else
  fi;
  if
  :: whom < WORKERS -> inbox[whom]!search
  :: else
  fi
}

// A thread that the context does not own.
proctype producer() {
  byte given = 0, whom, i;
  do
  :: given < TASKS ->
     atomic { live++; queued++ };
     given++;
     notify(whom, i)
  :: else -> break
  od;
  // Main ends now, or waits for them first. Worker 0 is woken by its end, as it runs there.
  if
  :: true -> skip
  :: true -> (ran + cancelled == TASKS)
  fi;
  main_done = true;
  first_woken!1
}

// stop(), from anywhere.
proctype stopper() {
  if
  :: stop_asked = true; first_woken!1
  :: skip
  fi
}

proctype worker(byte me) {
  byte whom, i;
  bool is_searching = false, under_way = false, leaving = false, stopping = false, took, last;
  mtype letter;

turn:
  // What worker 0 decides between two turns (C2).
  if
  :: me == 0 && stop_asked && !stopping ->
     stopping = true;
     i = 1;
     do
     :: i < WORKERS -> inbox[i]!stop; i++
     :: else -> break
     od
  :: else
  fi;
  if
#ifdef WITHOUT_COUNT
  :: me == 0 && main_done && !leaving && (live == 0 || stopping) ->
#else
  :: me == 0 && main_done && !leaving && live == 0 ->
#endif
     leaving = true;
     i = 1;
     do
     :: i < WORKERS -> inbox[i]!leave; i++
     :: else -> break
     od
  :: else
  fi;
  // The inbox.
  do
  :: inbox[me]?letter ->
     if
     :: letter == search -> under_way = false
     :: letter == stop -> stopping = true
     :: letter == leave -> leaving = true
     fi
  :: me == 0 && nempty(first_woken) -> first_woken?_
  :: empty(inbox[me]) && (me != 0 || empty(first_woken)) -> break
  od;
  if
  :: leaving && !under_way -> goto left
  :: else
  fi;
  // A fresh task: one's own or another's.
  atomic {
    took = queued > 0 && !leaving;
    if
    :: took -> queued--
    :: else
    fi
  };
  if
  :: took ->
     if
     :: is_searching ->
        is_searching = false;
        atomic { searching--; last = searching == 0 };
#ifndef WITHOUT_HANDOVER
        if
        :: last && queued > 0 -> notify(whom, i)
        :: else
        fi
#endif
     :: else
     fi;
     // It runs and ends, or is cancelled from its start.
     if
     :: stopping -> cancelled++
     :: else -> ran++
     fi;
     atomic {
       live--;
       last = live == 0 && main_done
     };
     if
     :: last && me != 0 -> first_woken!1
     :: else
     fi;
     goto turn
  :: else
  fi;
  // Nothing: park, look again, sleep.
  if
  :: !under_way && !leaving ->
     atomic {
       if
       :: is_searching -> searching--
       :: else
       fi;
       parked[me] = true;
       parked_count++
     };
     is_searching = false;
#ifndef WITHOUT_RECHECK
     if
     :: queued > 0 -> goto awake
     :: else
     fi;
#endif
     skip
  :: else
  fi;
  // The kernel: it sleeps until something is there. What worker 0 has to decide is looked at before.
  if
  :: me == 0 && ((stop_asked && !stopping) || (main_done && live == 0 && !leaving)) -> skip
  :: else ->
     if
     :: nempty(inbox[me]) || (me == 0 && nempty(first_woken)) -> skip
     fi
  fi;
awake:
  atomic {
    if
    :: parked[me] -> parked[me] = false; parked_count--
    :: !parked[me] && !under_way && !leaving -> is_searching = true; under_way = true
    :: else
    fi
  };
  goto turn;

left:
  if
  :: is_searching -> atomic { searching-- }
  :: else
  fi;
  closed[me] = true
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < WORKERS -> run worker(i); i++
    :: else -> break
    od;
    run producer();
    run stopper()
  };
  // Everyone has ended: nothing is left behind.
  (_nr_pr == 1);
  assert(queued == 0);
  assert(ran + cancelled == TASKS);
  assert(searching == 0 && parked_count == 0);
  i = 0;
  do
  :: i < WORKERS -> assert(closed[i]); i++
  :: else -> break
  od
}
