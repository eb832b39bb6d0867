// SPDX-License-Identifier: MIT
// A lock with a lease between processes, as a protocol: what src/durable/mutex_workflow.cc and a LockStore do, with time in steps.
//
//   spin -a lock_lease.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -m200000
//
// Two clients with three tickets: the first asks for it twice, one ticket after the other, and it alone renews and withdraws: the other is who comes between. Messages take any time and overtake each other; one that takes for ever
// is lost, and a release, of the first ticket, whose answer may be lost, is made again. A client renews its ticket, gives up while it waits (a timeout, a
// cancellation) and withdraws it, or is told that it is gone. Somebody revokes the resource, at any time. When nobody has a ticket the
// resource may be forgotten, at any time.
//
// A client that believes in its lock is inside until it leaves or its lease ends, whichever is first: time does not pass over that moment. No two are
// inside. Belief outlasts the ticket of who is paused inside, for any time, and of whom it was revoked: they write when they wake up. The
// register takes a write only from the greatest token it has seen, so no write of an older holder comes after one of a newer.
//
// The store grants whichever ticket it likes: that they are served in order is not what this is about.
//
// Each of these leaves a part out, and the search must then fail:
//
//   FROM_ANSWER         counts a lease from the answer instead of from before the request
//   RENEWED_FROM_ANSWER the same of a renewal
//   BY_NAME             releases what the client holds, whatever ticket
//   WITHDRAW_BY_NAME    withdraws what the client has, whatever ticket
//   ENTER_WITHDRAWN     lets a client in by a ticket that it has withdrawn
//   WITHOUT_GATE        writes without a look at the token
//   WITHOUT_RECHECK     lets a client in whose lease has ended meanwhile
//   WITHOUT_MARGIN      lets it stay to the very end of its lease
//   RETIRE_ANYWAY       forgets the resource though somebody has come meanwhile
//   TOKENS_RESTART      forgets the last token with the resource
//   REVOKE_EXCLUDES     takes it for granted that who is revoked has left before the next is in

#define LEASE    2
#define TIME_MAX 3
#define TICKETS  3
#define OWNER(t) (t == 2)  // of tickets 0 and 1 the first client, of 2 the second

byte now = 0;

// The store.
#define NONE    0
#define QUEUED  1
#define GRANTED 2
byte state[TICKETS];
byte ends[TICKETS];
byte next_token = 1;
byte next_order = 1;        // of grants, whatever tokens they have
bool granted_one = false;
bool revoked = false;

// Messages that are under way, of each ticket.
#define SENT 1
#define OK   2
#define GONE 3
bool ask[TICKETS];
bool release[TICKETS];
bool withdraw[TICKETS];
byte renewal[TICKETS];
bool grant[TICKETS];
bool late[TICKETS];         // the grant was under way when the resource was revoked
byte token[TICKETS];        // in the grant
byte order[TICKETS];

// The clients.
byte valid[2];
bool believes[2];           // inside, and neither paused nor over its lease
byte count = 0;             // of those

byte written = 0;           // the greatest token that the register has seen
byte written_order = 0;     // and whose it was

// Its last moment: it leaves before the store can have ended its lease.
#ifdef WITHOUT_MARGIN
#define LATE(i) (believes[i] && now >= valid[i])
#else
#define LATE(i) (believes[i] && now + 1 >= valid[i])
#endif

inline end_ticket(t) {
  if
  :: state[t] == GRANTED -> granted_one = false
  :: else
  fi;
  state[t] = NONE;
  ends[t] = 0
}
inline end_tickets_of(t) {
  i = 0;
  do
  :: i < TICKETS && OWNER(i) == OWNER(t) -> end_ticket(i); i++
  :: i < TICKETS && OWNER(i) != OWNER(t) -> i++
  :: i == TICKETS -> break
  od;
  i = 0
}
inline end_all_tickets() {
  end_ticket(0);
  end_ticket(1);
  end_ticket(2)
}
inline stop_believing(c) {
  if
  :: believes[c] -> believes[c] = false; valid[c] = 0; count--
  :: else
  fi
}

active proctype Clock() {
  do
  :: atomic { now < TIME_MAX && !LATE(0) && !LATE(1) -> now++ }
  :: now == TIME_MAX -> break
  od
}

active proctype Store() {
  byte t, i;
end:
  do
  :: atomic {
       if
       :: t = 0
       :: t = 1
       :: t = 2
       fi;
       if
       :: ask[t] && state[t] == NONE ->
          ask[t] = false;
          state[t] = QUEUED;
          ends[t] = now + LEASE
       :: state[t] == QUEUED && !granted_one && now < ends[t] ->
          state[t] = GRANTED;
          granted_one = true;
          token[t] = next_token;
          order[t] = next_order;
          next_token++;
          next_order++;
          grant[t] = true
       :: state[t] != NONE && now >= ends[t] -> end_ticket(t)
       :: release[t] ->
#ifdef BY_NAME
          end_tickets_of(t);
#else
          if
          :: state[t] == GRANTED -> end_ticket(t)
          :: else
          fi;
#endif
          if
          :: release[t] = false
          :: t == 0  // its answer is lost: it is made again
          fi
       :: withdraw[t] ->
          withdraw[t] = false;
#ifdef WITHDRAW_BY_NAME
          end_tickets_of(t)
#else
          end_ticket(t)
#endif
       :: renewal[t] == SENT ->
          if
          :: state[t] != NONE && now < ends[t] -> ends[t] = now + LEASE; renewal[t] = OK
          :: else -> renewal[t] = GONE
          fi
       :: !revoked && state[t] != NONE ->
          revoked = true;
          end_all_tickets();
#ifndef REVOKE_EXCLUDES
          // From here on they are like who is paused: the news is under way.
          stop_believing(0);
          stop_believing(1);
          late[0] = grant[0];
          late[1] = grant[1];
          late[2] = grant[2]
#endif
       // Nobody has a ticket: nothing of the resource is left but the next token.
#ifdef RETIRE_ANYWAY
       :: state[t] != NONE -> end_all_tickets()
#endif
#ifdef TOKENS_RESTART
       :: state[0] == NONE && state[1] == NONE && state[2] == NONE && next_token > 1 -> next_token = 1
#endif
       :: else
       fi;
       t = 0
     }
  od
}

proctype Client(byte me; byte t; byte last) {
  byte sent, renewed;
  bool may_enter, inside;
  do
  :: t > last -> break
  :: else ->
     atomic { sent = now; ask[t] = true; may_enter = true }
end_wait:  // time has an end here
     do
     :: atomic {
          grant[t] && may_enter ->
          grant[t] = false;
#ifdef FROM_ANSWER
          valid[me] = now + LEASE;
#else
          valid[me] = sent + LEASE;
#endif
          if
#ifdef WITHOUT_RECHECK
          :: true ->
#else
          :: now < valid[me] ->
#endif
             inside = true;
             if
             :: late[t]
             :: else -> believes[me] = true; count++
             fi;
             assert(count <= 1)
          :: else -> valid[me] = 0
          fi;
          break
        }
     :: atomic {  // given up: withdrawn
          me == 0 && !withdraw[t] && may_enter ->
          withdraw[t] = true;
#ifndef ENTER_WITHDRAWN
          may_enter = false;
          grant[t] = false;
          break
#endif
        }
     od;
     if
     :: inside ->
end_inside:
        do
        :: atomic { me == 0 && believes[me] && renewal[t] == NONE -> renewal[t] = SENT; renewed = now }
        :: atomic {
             believes[me] && renewal[t] == OK ->
             renewal[t] = GONE;  // one is enough
#ifdef RENEWED_FROM_ANSWER
             valid[me] = now + LEASE
#else
             if
             :: renewed + LEASE > valid[me] -> valid[me] = renewed + LEASE
             :: else
             fi
#endif
           }
        :: atomic { believes[me] -> stop_believing(me) }  // paused, or told that it is gone
        :: atomic {  // the write, and the end: in time, or after the pause
#ifndef WITHOUT_GATE
             if
             :: token[t] >= written ->
#endif
                assert(order[t] >= written_order);
                written = token[t];
                written_order = order[t]
#ifndef WITHOUT_GATE
             :: else  // refused
             fi
#endif
             ;
             stop_believing(me);
             release[t] = true;
             break
           }
        od
     :: !inside && may_enter -> release[t] = true  // it came too late
     :: !inside && !may_enter
     fi;
     atomic {  // what nobody looks at any more is one state
       late[t] = false;
       grant[t] = false;
       if
       :: renewal[t] != SENT -> renewal[t] = NONE
       :: else
       fi;
       sent = 0;
       renewed = 0;
       may_enter = false;
       inside = false;
       t++
     }
  od
}

init {
  atomic {
    run Client(0, 0, 1);
    run Client(1, 2, 2)
  }
}
