import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import { isNestedDeeper, parseBoundedJson } from "../../core/json.js";
import { MAX_MESSAGE_DEPTH, MAX_MESSAGE_NODES } from "./limits.js";
/**
 * A connection whose replies come in the order of its calls. A call that times out, an unexpected message or a lost
 * connection ends it: the pending call and all later ones fail with the first error.
 */
export class SerialChannel {
    name;
    timeout;
    pending;
    failure;
    queue = Promise.resolve();
    nextCallId = 0;
    constructor(name, timeout) {
        this.name = name;
        this.timeout = timeout;
    }
    call(method, params, timeout = this.timeout) {
        const result = this.queue.then(() => this.exchange(method, params, timeout));
        this.queue = result.catch(() => { });
        return result;
    }
    /** Marks the channel as closed; calls fail from now on. */
    markClosed() {
        this.failure ??= bridgeError(this.name, "was closed.");
        this.pending?.reject(this.failure);
    }
    fail(problem, cause) {
        if (this.failure !== undefined)
            return;
        this.failure = bridgeError(this.name, problem, cause);
        this.pending?.reject(this.failure);
        this.terminate();
    }
    async exchange(method, params, timeout) {
        if (this.failure !== undefined)
            throw this.failure;
        const id = this.nextCallId++;
        const timer = setTimeout(() => this.fail(`did not answer ${method} within ${timeout} ms.`), timeout);
        try {
            const reply = await new Promise((resolve, reject) => {
                this.pending = { id, resolve, reject };
                this.send(id, method, params);
            });
            return this.readResult(method, reply);
        }
        finally {
            clearTimeout(timer);
            this.pending = undefined;
        }
    }
}
/** Returns the error for a remote environment that failed. */
export function bridgeError(name, problem, cause) {
    return new LlamaGymError("ENV_FAILED", `${name} ${problem}`, { cause });
}
/** @throws INVALID_ARGUMENT unless the value is a number of milliseconds above 0. */
export function checkTimeoutMs(name, value = 60_000) {
    // Maximum delay of a Node.js timer.
    if (value > 0 && value < 2 ** 31)
        return value;
    throw invalidArgument(`${name} must be milliseconds above 0 and below 2^31, got ${value}.`);
}
/** Parses a message; undefined for text that is not JSON or is nested too deep for the readers of messages. */
export function parseMessage(text) {
    try {
        const json = parseBoundedJson(text, MAX_MESSAGE_NODES);
        return isNestedDeeper(json, MAX_MESSAGE_DEPTH) ? undefined : json;
    }
    catch {
        return undefined;
    }
}
/** Formats a JSON value for an error message, truncated; strings unquoted. */
export function formatJson(json, length) {
    return excerpt(typeof json === "string" ? json : (JSON.stringify(json) ?? "nothing"), length);
}
