/* Limits on what MCP servers and clients send, beyond those of ../limits.ts. */
/** Tools of a server, as many as a request to OpenAI's API may have. */
export const MAX_TOOLS = 128;
/** Pages of a list of tools: one tool each. */
export const MAX_TOOL_PAGES = 128;
export const MAX_TOOL_NAME_LENGTH = 128;
/** Characters of a tool's description in the prompt; more than a model reads before it acts. */
export const MAX_DESCRIPTION_LENGTH = 2000;
/** Parts of one result: every part takes a line of the observation. */
export const MAX_RESULT_PARTS = 1000;
/** Lines without a message; servers may print a few lines by mistake. */
export const MAX_INVALID_MESSAGES = 100;
/** Episodes in a row that end because the server failed, before that is an error. */
export const MAX_FAILED_EPISODES = 3;
/** Bytes of a file of tasks: it is read at once. */
export const MAX_TASK_FILE_BYTES = 64 * 2 ** 20;
