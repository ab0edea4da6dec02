import { asJsonObject } from "../../core/json.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { Env } from "../env.js";
import { bridgeError } from "./channel.js";
import { decodeObservation } from "./decode-observation.js";
/**
 * An environment in another process or on another machine. Calls are asynchronous; remote
 * errors become ENV_FAILED. Its random stream and state are remote, so it has neither here.
 */
export class RemoteEnv extends Env {
    channel;
    observationSpace;
    actionSpace;
    metadata;
    text;
    phase = "new";
    constructor(channel, { observationSpace, actionSpace, metadata, text }) {
        super();
        this.channel = channel;
        this.observationSpace = observationSpace;
        this.actionSpace = actionSpace;
        this.metadata = metadata;
        this.text = text;
    }
    async reset({ seed, options } = {}) {
        // Only validates the seed; the random stream is remote.
        this.reseed(seed);
        const params = {
            ...(seed === undefined ? {} : { seed: typeof seed === "bigint" ? String(seed) : seed }),
            ...(options === undefined ? {} : { options: toJsonObject("reset options", options) }),
        };
        const result = this.readObject("reset", await this.channel.call("reset", params));
        const observation = this.observation(result);
        this.phase = "running";
        return { observation, info: { ...asJsonObject(result.info) } };
    }
    async step(action) {
        this.checkAction(action);
        if (this.phase === "new")
            throw this.notResetError();
        if (this.phase === "over")
            throw new LlamaGymError("ENV_NOT_RESET", `${this.channel.name}: the episode has ended. Call reset().`);
        const result = this.readObject("step", await this.channel.call("step", { action: this.actionSpace.encode(action) }));
        const { terminated, truncated = false, reward } = result;
        if (typeof terminated !== "boolean" || typeof truncated !== "boolean")
            throw bridgeError(this.channel.name, "replied to a step without a boolean for `terminated` and `truncated`.");
        const rewardNumber = reward === "Infinity" || reward === "-Infinity" ? Number(reward) : reward;
        if (typeof rewardNumber !== "number" || Number.isNaN(rewardNumber))
            throw bridgeError(this.channel.name, "replied to a step without a number for `reward`.");
        const observation = this.observation(result);
        this.phase = terminated || truncated ? "over" : "running";
        return { observation, reward: rewardNumber, terminated, truncated, info: { ...asJsonObject(result.info) } };
    }
    async render(mode) {
        if (!this.metadata.renderModes.includes(mode))
            return super.render(mode);
        if (this.phase === "new")
            throw this.notResetError();
        const { text, width, height, data } = this.readObject("render", await this.channel.call("render", { mode }));
        if (typeof text === "string")
            return text;
        if (isCount(width) && isCount(height) && typeof data === "string") {
            const bytes = new Uint8Array(Buffer.from(data, "base64"));
            if (bytes.length === 3 * width * height)
                return { width, height, data: bytes };
        }
        throw bridgeError(this.channel.name, `replied to render("${mode}") with neither text nor an image.`);
    }
    close() {
        return this.channel.close();
    }
    toString() {
        return `<${this.constructor.name}<${this.channel.name}>>`;
    }
    readObject(method, json) {
        const result = asJsonObject(json);
        if (result !== undefined)
            return result;
        throw bridgeError(this.channel.name, `replied to ${method} with something other than an object.`);
    }
    observation({ observation }) {
        try {
            return decodeObservation(this.observationSpace, observation ?? null);
        }
        catch (error) {
            const problem = `returned an observation that does not match its space: ${error.message}`;
            throw bridgeError(this.channel.name, problem, error);
        }
    }
}
const isCount = (value) => Number.isInteger(value) && value > 0;
/** @throws INVALID_ARGUMENT for values without a JSON form. */
export function toJsonObject(name, value) {
    try {
        return JSON.parse(JSON.stringify(value));
    }
    catch (error) {
        throw invalidArgument(`The ${name} cannot be written as JSON: ${error.message}`);
    }
}
