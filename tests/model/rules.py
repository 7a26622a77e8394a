"""The rules of the protocol, each of which a search can switch off, and the faults."""

from __future__ import annotations

from enum import Enum

__all__ = ["Fault", "Rule"]


class Rule(Enum):
    """The protocol's rules: each value is the rule's text; the comments name the code that implements it."""

    # -- the claim, in block/claim.py, record/checkpoints.py and objects/s3.py
    MARKER_FIRST = "an attempt puts its marker before it touches the document"
    MARKER_OF_ITS_OWN = "each attempt has a marker of its own"
    MARKER_STAYS_IN_DOUBT = "an attempt whose claim had no answer leaves its marker"
    CLAIM_CLOCK = "no claim after the lead time has begun"
    ONLY_THE_DEAD = "an open write is taken over only from a dead owner"
    DELIVERY = "a block that finds its own delivery under a committed write is refused"
    CAS = "the document changes by compare-and-swap only"
    STORE_READ_BACK = "a conditional write without an answer is read back"
    # -- the gate, in image/logstore
    GATE_SHUT = "a gate that is shut lets nothing through"
    GATE_CLOCK = "nothing passes the gate after the lead time has begun"
    GATE_FENCE = "the gate looks for a fence in every version between claim and slot"
    GATE_SLOT = "the gate looks for a fence in the slot that it lost"
    GATE_ONCE = "a block holds one commit"
    GATE_ALONE = "while a block is open, no other statement of its process writes rows to its table"
    GATE_UNDOABLE = "with commit_point=success no commit passes that an undo could not take back"
    GATE_LANDED = "a gate looks for the write in what the table held before the document began"
    UNDONE_AGAIN = "nothing is written beside undone rows of the write that somebody has brought back"
    GATE_BYTES = "only equal bytes in the slot are the gate's own commit"
    GATE_READ_BACK = "a commit without an answer is read back"
    GATE_OVER = "nothing of a block that is over may be committed"
    JOURNAL_FIRST = "the journal learns of a commit before it is sent"
    CREATION_NOTE = "a block that creates its table competes for the note first"
    # -- the end of a block, in block/ending.py, tables/delta/readback.py and settle/supervisor.py
    SUCCESS_SHUTS = "success() shuts the gate before it looks"
    SUCCESS_READS = "success() believes only what it reads in the table"
    SUCCESS_WITNESS = "success() without a commit needs the program's word that there is nothing to write"
    SUCCESS_WHOLE = "success() fails if a statement of the block was refused"
    DOUBT_IS_NOT_NOTHING = "a commit without an answer does not count as never sent"
    REFUSAL_TOLD = "the journal learns of a refused statement, and the supervisor reports it"
    INCOMPLETE_STAYS = "a write that lacks rows is neither skipped nor claimed again"
    KILL_FIRST = "the supervisor settles only when nothing of the child runs"
    OWN_EPOCH_ONLY = "who settles an epoch never settles the next one: a guard its own, others the one found dead"
    COMES_BACK = "a guard that was settled by somebody else cleans up after itself"
    # -- settle, in settle/recovery.py and tables/delta
    FENCE = "a settler takes a slot of the log before it believes that nothing landed"
    GUARD_FENCE = "the guard fences, too, unless it has sent nothing"
    FENCE_DEAD_EPOCH = "the fence carries the dead epoch"
    LOOK_EPOCH = "a settler sees only commits of the epoch it has read, or earlier ones"
    ROLLING_BACK_FIRST = "rolling_back is written before the revert"
    ROLLING_BACK_BINDS = "a document that names a commit is undone by whoever settles it"
    TARGETED_REVERT = "an undo removes exactly our files"
    UNDO_ADDS = "only a commit that only adds files is undone"
    UNDO_TRANSACTION = "no commit with a transaction of the script's own is undone"
    UNDO_REFUSED = "what others have rewritten, or left out rows for, is not undone"
    # -- clean-up, in settle/recovery.py
    CLEAN_TERMINAL = "files are deleted under a terminal verdict only"
    CLEAN_REFERRED = "no file that a version refers to is deleted"
    CLEAN_OWN_PREFIX = "each attempt's files have a prefix of their own"
    CLEAN_GRACE = "an attempt counts as clean only when nothing of it can still arrive"
    # -- markers without a document that names them, in settle/one_write.py
    TOMBSTONE = "a write that was announced and never claimed is created as rolled_back before its marker goes"
    ASK_TABLE = "a write without a document is rolled_back only if the table holds nothing of it"
    TOUCH = "a settled document is written anew before a marker that it does not know goes"


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
