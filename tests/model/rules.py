"""The rules of the protocol, each of which a search can switch off, and the faults."""

from __future__ import annotations

from enum import Enum

__all__ = ["Fault", "Rule"]


class Rule(Enum):
    """The protocol's rules: each value is the rule's text; the comments name the code that implements it."""

    # -- the claim, in block/claim.py, record/checkpoints.py, objects/s3.py and entropy.py
    MARKER_FIRST = "an attempt puts its marker before it touches the document"
    MARKER_OF_ITS_OWN = "each attempt has a marker of its own"
    MARKER_STAYS_IN_DOUBT = "an attempt whose claim had no answer leaves its marker"
    CLAIM_CLOCK = "no attempt claims after the lead time has begun"
    ONLY_THE_DEAD = "an attempt takes an open write over only from a dead owner"
    DELIVERY = "SafeWriter refuses a block that finds its own delivery under a committed write"
    CAS = "the document changes by compare-and-swap only"
    STORE_READ_BACK = "SafeWriter reads a conditional write back that had no answer"
    IDS_OF_ITS_OWN = "no two processes put equal bytes into a document, not even two copies of one"
    # -- the gate, in image/logstore
    GATE_SHUT = "a shut gate lets nothing through"
    GATE_CLOCK = "nothing passes the gate after the lead time has begun"
    GATE_FENCE = "the gate searches every version between claim and slot for a fence"
    GATE_SLOT = "the gate searches the slot that it lost for a fence"
    GATE_ONCE = "a block holds one commit"
    GATE_ALONE = "while a block is open, no other statement of its process writes rows to its table"
    GATE_UNDOABLE = "with commit_point=success the gate refuses a commit that no undo could take back"
    GATE_LANDED = "the gate looks for the write in what the table held before the document began"
    UNDONE_AGAIN = "SafeWriter writes nothing beside undone rows of the write that somebody has restored"
    GATE_BYTES = "only equal bytes in the slot are the gate's own commit"
    GATE_READ_BACK = "the gate reads a commit back that had no answer"
    GATE_OVER = "no statement of a finished block may commit"
    JOURNAL_FIRST = "the journal learns of a commit before the gate sends it"
    CREATION_NOTE = "a block that creates its table competes for the note first"
    # -- the end of a block, in block/ending.py, tables/delta/readback.py and settle/supervisor.py
    SUCCESS_SHUTS = "success() shuts the gate before it reads the table"
    SUCCESS_READS = "success() believes only what it reads in the table"
    SUCCESS_WITNESS = "success() without a commit of the block needs the program's word that it has nothing to write"
    SUCCESS_WHOLE = "success() fails if the gate has refused a statement of the block"
    DOUBT_IS_NOT_NOTHING = "a commit without an answer does not count as never sent"
    REFUSAL_TOLD = "the journal learns of each refused statement, and the supervisor reports it"
    INCOMPLETE_STAYS = "a write that lacks rows is neither skipped nor claimed again"
    KILL_FIRST = "the supervisor settles only when no process of the child runs"
    OWN_EPOCH_ONLY = "no settler of an epoch settles the next one: a guard settles its own, others the one found dead"
    COMES_BACK = "a guard whose write another process settled removes its own files"
    # -- settle, in settle/recovery.py and tables/delta
    FENCE = "a settler takes a slot of the log before it believes that nothing landed"
    GUARD_FENCE = "the guard fences too, unless it has sent nothing"
    FENCE_DEAD_EPOCH = "the fence carries the dead epoch"
    LOOK_EPOCH = "a settler sees only commits of the epoch that it has read, or of earlier ones"
    ROLLING_BACK_FIRST = "the settler writes rolling_back before the revert"
    ROLLING_BACK_BINDS = "every settler undoes a document that names a commit"
    TARGETED_REVERT = "an undo removes exactly the attempt's files"
    UNDO_ADDS = "SafeWriter undoes only a commit that only adds files"
    UNDO_TRANSACTION = "SafeWriter undoes no commit with a transaction of the script's own"
    UNDO_REFUSED = "SafeWriter does not undo what other writers have rewritten, or for which they have left out rows"
    # -- clean-up, in settle/recovery.py
    CLEAN_TERMINAL = "a settler deletes files under a final verdict only"
    CLEAN_REFERRED = "no settler deletes a file that a version refers to"
    CLEAN_OWN_PREFIX = "each attempt's files have a prefix of their own"
    CLEAN_GRACE = "an attempt counts as clean only when nothing of it can still arrive"
    # -- markers without a document that names them, in settle/one_write.py
    MARKER_WAITS = "a marker of which no document tells stays for a claim that is still to come"
    ASK_TABLE = "a sweep creates the document of a write only if the table holds its commit"


class Fault(Enum):
    """The faults; a scenario allows a number of them."""

    KILL = "SIGKILL of a sandbox, at any moment, a request of its own perhaps still in the air"
    KILL_CHILD = "SIGKILL of the job's process; its supervisor lives"
    STALL = "a sandbox stands still, long enough for its lease to run out, and goes on"
    LATE = "a request is answered by an error and lands later, or never"
    LOST = "a request is applied and its answer lost"
    EXCEPTION = "the block raises"
    INTERRUPT = "the block raises while its statement goes on"
    THREAD = "the block goes on while its statement still runs in a thread"
    SECOND = "the block runs a second statement"
    AGAIN = "the block catches its statement's error and runs it again"
    SWALLOW = "the block swallows its statement's error and goes on"
    IDLE = "the statement makes no commit: it writes elsewhere, or there is nothing to write"
    STRANGER = "another thread of the block's process writes rows to the table"
    EMPTY = "somebody empties the checkpoint bucket between two attempts"
    FORGET = "the document of an open write is deleted, long after its attempts have ended"
    GAP = "the log loses versions that would have to be looked at; a catalog loses the table"
    RESTORE = "somebody restores the table to a version with a commit that was undone"
    SET_BACK = "somebody sets main to another snapshot, an older one or again a newer one"
    EXPIRE = "all snapshots but main's newest are expired"
    UNMARK = "somebody unsets the properties by which publications are known"
    AGE = "days go by, until fences expire and marks are removed"
