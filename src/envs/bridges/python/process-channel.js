import { excerpt } from "../../../core/format.js";
import { spawn } from "node:child_process";
import { bridgeError, formatJson, parseMessage, SerialChannel } from "../channel.js";
import { asJsonObject } from "../../../core/json.js";
import { LineSplitter } from "../line-splitter.js";
/** Maximum length of a line in bytes: a large image as JSON. The process is the user's own. */
const MAX_LINE_BYTES = 2 ** 28;
const MAX_STDERR_IN_ERROR = 1200;
/** Time for a process to close its environment before it is killed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2000;
/**
 * A child process that replies to JSON lines with JSON lines. Errors include the end of its standard error. It exits with
 * its standard input, so it does not outlive this process, and an idle one does not keep this process alive.
 */
export class ProcessChannel extends SerialChannel {
    child;
    stderr = "";
    lines = new LineSplitter(MAX_LINE_BYTES);
    exited;
    constructor({ name, command, args, environment, timeout }) {
        super(name, timeout);
        const env = { ...process.env, ...environment };
        const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env, windowsHide: true });
        this.child = child;
        child.stdout.on("data", (data) => this.readLines(data));
        child.stderr.setEncoding("utf8").on("data", (text) => {
            this.stderr = (this.stderr + text).slice(-MAX_STDERR_IN_ERROR);
        });
        // The "close" event reports an exited process.
        child.stdin.on("error", () => { });
        this.exited = new Promise((resolve) => {
            child.on("error", (error) => {
                this.fail(`could not be started by "${command}": ${error.message}.`, error);
                resolve();
            });
            child.on("close", (code, signal) => {
                this.fail(signal === null ? `ended with status ${code}.` : `was ended by ${signal}.`);
                resolve();
            });
        });
        this.setReferenced(false);
    }
    async close() {
        if (this.failure === undefined && this.pending === undefined)
            await this.call("close", {}, CLOSE_TIMEOUT_MS).catch(() => { });
        this.markClosed();
        this.terminate();
        this.child.ref();
        await this.exited;
    }
    async exchange(method, params, timeout) {
        this.setReferenced(true);
        try {
            return await super.exchange(method, params, timeout);
        }
        finally {
            this.setReferenced(false);
        }
    }
    send(id, method, params) {
        this.child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
    }
    terminate() {
        this.child.kill("SIGKILL");
    }
    readResult(method, reply) {
        const error = asJsonObject(reply.error);
        if (error === undefined)
            return reply.result ?? null;
        const { type = "error", message, traceback } = error;
        const cause = typeof traceback === "string" && traceback.trim() !== "" ? traceback.trim() : undefined;
        throw bridgeError(this.name, `failed in ${method}: ${formatJson(type)}: ${formatJson(message, 4000)}`, cause);
    }
    fail(problem, cause) {
        const stderr = this.stderr.trim();
        super.fail(stderr === "" ? problem : `${problem} The end of its standard error: ${stderr}`, cause);
    }
    readLines(data) {
        for (const line of this.lines.push(data))
            this.receive(line);
        if (this.lines.isTooLong)
            this.fail(`sent a line of more than ${MAX_LINE_BYTES} bytes.`);
    }
    receive(line) {
        const reply = asJsonObject(parseMessage(line));
        const isReply = reply !== undefined && ("result" in reply || asJsonObject(reply.error) !== undefined);
        if (!isReply)
            this.fail(`sent an invalid reply: ${excerpt(line)}`);
        else if (reply.id !== this.pending?.id)
            this.fail(`sent an unexpected reply: ${excerpt(line)}`);
        else
            this.pending?.resolve(reply);
    }
    /** Sets whether Node.js waits for the process. */
    setReferenced(isReferenced) {
        const method = isReferenced ? "ref" : "unref";
        this.child[method]();
        for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr])
            stream[method]?.();
    }
}
