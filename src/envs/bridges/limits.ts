/*
 * Limits on what servers of environments send. Their descriptions, schemas and replies are
 * untrusted: each is checked before anything is built from it.
 */

/**
 * Bytes of a message: an observation of MAX_SPACE_ELEMENTS bytes as JSON. Parsed, it takes at most
 * 20 times that memory.
 */
export const MAX_MESSAGE_BYTES = 32 * 2 ** 20;
/** Arrays, objects and strings of a message; one takes ten times the memory of its text. */
export const MAX_MESSAGE_NODES = 1_000_000;
/**
 * Nested arrays and objects of a message: every level takes stack frames of the recursive readers.
 */
export const MAX_MESSAGE_DEPTH = 64;
/** Numbers of a flattened space: an image of 1024 x 1024 pixels of four bytes. */
export const MAX_SPACE_ELEMENTS = 2 ** 22;
/**
 * Characters of an observation as text and of a system prompt: more than any context holds,
 * tokenized in seconds.
 */
export const MAX_TEXT_LENGTH = 2 ** 20;
/** Names of actions and choices: a completion is compared with each. */
export const MAX_ACTION_NAMES = 10_000;
export const MAX_ACTION_NAME_LENGTH = 1000;
/** Characters of a JSON Schema, which becomes part of the system prompt. */
export const MAX_SCHEMA_LENGTH = 100_000;
/** Time after which another client may take the place of a session: few clients end theirs. */
export const MAX_SESSION_IDLE_MS = 30 * 60_000;
