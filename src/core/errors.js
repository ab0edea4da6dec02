import { describeIssue, issuesOf } from "./schema-issue.js";
/**
 * The one error class of the library. The message names the thing, what was expected and what to do;
 * the code is for programs.
 */
export class LlamaGymError extends Error {
    name = "LlamaGymError";
    code;
    constructor(code, message, options) {
        super(message, options);
        this.code = code;
    }
    toString() {
        return `LlamaGymError [${this.code}]: ${this.message}`;
    }
}
/** Returns the message of a thrown value, for the end of another message. */
export function errorMessage(error) {
    const issues = issuesOf(error);
    if (issues !== undefined)
        return describeIssue(issues);
    return error instanceof Error ? error.message : String(error);
}
export function invalidArgument(message) {
    return new LlamaGymError("INVALID_ARGUMENT", message);
}
/** An ENV_INVALID error, for an environment that breaks the rules of the API. */
export function invalidEnv(message, cause) {
    return new LlamaGymError("ENV_INVALID", message, { cause });
}
