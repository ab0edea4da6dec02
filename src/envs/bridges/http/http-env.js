import { randomUUID } from "node:crypto";
import { bridgeError, checkTimeoutMs } from "../channel.js";
import { createTextInterface } from "../create-text-interface.js";
import { readDescription } from "../remote-description.js";
import { RemoteEnv } from "../remote-env.js";
import { requestJson, sendRequest, parseServerUrl } from "./http-client.js";
/** Protocol version in /spec. */
const PROTOCOL_VERSION = 1;
const CLOSE_TIMEOUT_MS = 2000;
/** An environment on a custom HTTP server: GET /spec, POST /reset, POST /step. */
export class HttpEnv extends RemoteEnv {
    /**
     * Connects to the server at `url` and reads /spec: `{ protocol: 1, observationSpace, actionSpace }` and optionally
     * `systemPrompt`, `actionNames`, `renderModes`.
     * @throws ENV_FAILED when no server responds, or one with another protocol version; ENV_INVALID for an invalid /spec
     */
    static async connect(url, options = {}) {
        const server = {
            name: `The environment at ${url}`,
            url: parseServerUrl(url, ["http", "https"]).href.replace(/\/$/, ""),
            timeout: checkTimeoutMs("timeout", options.timeout),
            headers: options.headers,
        };
        const spec = readDescription(server.name, await requestJson(server, "/spec"), { protocol: PROTOCOL_VERSION });
        const { observationSpace, actionSpace, renderModes } = spec;
        return new HttpEnv(new HttpChannel(server), {
            observationSpace,
            actionSpace,
            metadata: { renderModes },
            text: options.text ?? createTextInterface(observationSpace, actionSpace, { ...spec, ...options }),
        });
    }
}
/** Sends the session id with every request, so that a server can keep one environment per client. */
class HttpChannel {
    server;
    name;
    session = randomUUID();
    queue = Promise.resolve();
    isClosed = false;
    constructor(server) {
        this.server = server;
        this.name = server.name;
    }
    call(method, params) {
        const result = this.queue.then(() => {
            if (this.isClosed)
                throw bridgeError(this.name, "was closed.");
            return requestJson(this.server, `/${method}`, { session: this.session, ...params });
        });
        this.queue = result.catch(() => { });
        return result;
    }
    /** A server without /close has nothing to release. */
    async close() {
        if (this.isClosed)
            return;
        this.isClosed = true;
        const server = { ...this.server, timeout: Math.min(this.server.timeout, CLOSE_TIMEOUT_MS) };
        await sendRequest(server, "/close", { session: this.session }).catch(() => { });
    }
}
