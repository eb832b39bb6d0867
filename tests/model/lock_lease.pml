// SPDX-License-Identifier: MIT
// A lock with a lease between processes, as a protocol: what src/durable/mutex_workflow.cc and a LockStore do, with time in steps.
//
//   spin -a lock_lease.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m200000
//
// Messages take any time and overtake each other, and an answer may come after the client has given up. A client that believes in its lock is
// inside until it leaves or its lease ends, whichever is first: time does not pass over that moment. No two are inside.
// Then every client may be paused inside, for any time, and writes when it wakes up: the register takes a write only from
// the greatest token it has seen, so no write of an older holder comes after one of a newer.
//
// Each of these leaves a part out, and the search must then fail: FROM_ANSWER counts a lease from the answer instead of from before the
// request; BY_NAME releases what the client holds, whatever token; WITHOUT_GATE writes without a look at the token;
// WITHOUT_RECHECK lets a client in whose lease has ended meanwhile; WITHOUT_MARGIN lets it stay to the very end of its lease.

#define CLIENTS  2
#define LEASE    2
#define TIME_MAX 4
#define ROUNDS   2

byte now = 0;

// The store: one ticket per client at a time, known by the round it is of.
byte holder = 0;               // 0: nobody; else the client + 1
byte holder_token = 0;
byte next_token = 1;
byte ends[CLIENTS];            // of a ticket's lease
bool queued[CLIENTS];
byte queued_round[CLIENTS];
chan queue = [CLIENTS] of { byte };

chan asks = [CLIENTS * ROUNDS] of { byte, byte };                // client, round
chan releases = [CLIENTS * ROUNDS] of { byte, byte };   // client, token
chan grants[CLIENTS] = [ROUNDS] of { byte, byte };           // round, token

// The clients.
byte valid[CLIENTS];
bool believes[CLIENTS];        // inside, and neither paused nor over its lease
byte count = 0;                // of those

byte written = 0;              // the greatest token that the register has seen

// Its last moment: it leaves before the store can have ended its lease.
#ifdef WITHOUT_MARGIN
#define LATE(i) (believes[i] && now >= valid[i])
#else
#define LATE(i) (believes[i] && now + 1 >= valid[i])
#endif

active proctype Clock() {
  do
  :: atomic { now < TIME_MAX && !LATE(0) && !LATE(1) -> now++ }
  :: now == TIME_MAX -> break
  od
}

active proctype Store() {
  byte who, what;
end:
  do
  :: atomic {
       asks?who, what ->
       if
       :: !queued[who] && holder != who + 1 ->
          queued[who] = true;
          queued_round[who] = what;
          ends[who] = now + LEASE;
          queue!who
       :: else  // its last one is there yet: given up as the client has
       fi
     }
  :: atomic {
       holder == 0 && nempty(queue) ->
       queue?who;
       queued[who] = false;
       if
       :: now >= ends[who]  // its lease has ended while it waited
       :: else ->
          holder = who + 1;
          holder_token = next_token;
          next_token++;
          grants[who]!queued_round[who], holder_token
       fi
     }
  :: atomic { holder != 0 && now >= ends[holder - 1] -> holder = 0; holder_token = 0 }
  :: atomic {
       releases?who, what ->
       if
#ifdef BY_NAME
       :: holder == who + 1 -> holder = 0; holder_token = 0
#else
       :: holder == who + 1 && holder_token == what -> holder = 0; holder_token = 0
#endif
       :: else
       fi
     }
  od
}

proctype Client(byte me) {
  byte round = 0, sent, got, token;
  bool inside;
  do
  :: round == ROUNDS -> break
  :: round < ROUNDS ->
     atomic { token = 0; sent = now; asks!me, round }
end_wait:  // time has an end here
     do
     :: atomic {
          grants[me]?got, token ->
          if
          :: got == round -> break
          :: else -> token = 0  // of a round that was given up
          fi
        }
     :: now >= sent + LEASE -> break                                    // given up: the lease would be over
     od;
     if
     :: token == 0
     :: token != 0 ->
        atomic {
#ifdef FROM_ANSWER
          valid[me] = now + LEASE;
#else
          valid[me] = sent + LEASE;
#endif
          inside = false;
          if
#ifdef WITHOUT_RECHECK
          :: true ->
#else
          :: now < valid[me] ->
#endif
             inside = true;
             believes[me] = true;
             count++;
             assert(count <= 1)
          :: else
          fi
        }
        if
        :: inside ->
           if
           :: atomic { believes[me] = false; count-- }  // paused: from here on it knows nothing
           :: true
           fi;
           // The write: at once, or after the pause.
           atomic {
#ifndef WITHOUT_GATE
             if
             :: token >= written ->
#endif
                assert(token >= written);
                written = token
#ifndef WITHOUT_GATE
             :: else  // refused
             fi
#endif
             ;
             if
             :: believes[me] -> believes[me] = false; count--
             :: else
             fi;
             releases!me, token
           }
        :: else -> releases!me, token
        fi
     fi;
     round++
  od
}

init {
  atomic {
    run Client(0);
    run Client(1)
  }
}
