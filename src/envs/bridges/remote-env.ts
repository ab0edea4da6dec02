import { LlamaGymError } from "../../errors.js";
import { Env, type EnvMetadata, type RenderFrame, type RenderMode, type ResetOptions } from "../env.js";
import type { ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../json.js";
import type { Space } from "../spaces/space.js";
import type { TextForm } from "../text-form.js";
import { asObject, bridgeFailed, type Channel, type JsonObject } from "./channel.js";
import { decodeObservation } from "./decode.js";

/** What must be known of an environment that lives elsewhere before it can be used. */
export interface RemoteDescription {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly metadata: EnvMetadata;
  readonly text: TextForm<unknown, unknown> | undefined;
}

/**
 * An environment in another process or on another machine, reached through a channel. Calls are asynchronous; whatever
 * goes wrong at the other end is an ENV_FAILED. It has no random stream and cannot be saved: both live elsewhere.
 */
export class RemoteEnv extends Env {
  override readonly observationSpace: Space;
  override readonly actionSpace: Space;
  override readonly metadata: EnvMetadata;
  override readonly text: TextForm<unknown, unknown> | undefined;
  private phase: "new" | "running" | "over" = "new";

  constructor(
    private readonly channel: Channel,
    { observationSpace, actionSpace, metadata, text }: RemoteDescription,
  ) {
    super();
    this.observationSpace = observationSpace;
    this.actionSpace = actionSpace;
    this.metadata = metadata;
    this.text = text;
  }

  override async reset({ seed, options }: ResetOptions = {}): Promise<ResetResult<unknown>> {
    // Only says whether the seed is one: the stream that it starts is at the other end.
    this.reseed(seed);
    const params = {
      ...(seed === undefined ? {} : { seed: typeof seed === "bigint" ? String(seed) : seed }),
      ...(options === undefined ? {} : { options: jsonOf("reset options", options) }),
    };
    const result = this.read("reset", await this.channel.call("reset", params));
    this.phase = "running";
    return { observation: this.observation(result), info: { ...asObject(result.info) } };
  }

  override async step(action: unknown): Promise<StepResult<unknown>> {
    this.checkAction(action);
    if (this.phase === "new") throw this.notReset();
    if (this.phase === "over") {
      throw new LlamaGymError("ENV_NOT_RESET", `${this.channel.name}: the episode has ended. Call reset().`);
    }
    const result = this.read("step", await this.channel.call("step", { action: this.actionSpace.encode(action) }));
    const { terminated, truncated = false, reward } = result;
    if (typeof terminated !== "boolean" || typeof truncated !== "boolean") {
      throw bridgeFailed(this.channel.name, "answered a step without true or false for `terminated` and `truncated`.");
    }
    const isNumber = typeof reward === "number" || ["Infinity", "-Infinity", "NaN"].includes(reward as string);
    if (!isNumber) throw bridgeFailed(this.channel.name, "answered a step without a number for `reward`.");
    const observation = this.observation(result);
    this.phase = terminated || truncated ? "over" : "running";
    return { observation, reward: Number(reward), terminated, truncated, info: { ...asObject(result.info) } };
  }

  override async render(mode: RenderMode): Promise<RenderFrame> {
    if (!this.metadata.renderModes.includes(mode)) return super.render(mode);
    if (this.phase === "new") throw this.notReset();
    const { text, width, height, data } = this.read("render", await this.channel.call("render", { mode }));
    if (typeof text === "string") return text;
    if (typeof width === "number" && typeof height === "number" && typeof data === "string") {
      return { width, height, data: new Uint8Array(Buffer.from(data, "base64")) };
    }
    throw bridgeFailed(this.channel.name, `answered render("${mode}") with neither a text nor an image.`);
  }

  override close(): Promise<void> {
    return this.channel.close();
  }

  override toString(): string {
    return `<${this.constructor.name}<${this.channel.name}>>`;
  }

  private read(method: string, json: JsonValue): JsonObject {
    const result = asObject(json);
    if (result === undefined)
      throw bridgeFailed(this.channel.name, `answered ${method} with something else than an object.`);
    return result;
  }

  private observation({ observation }: JsonObject): unknown {
    try {
      return decodeObservation(this.observationSpace, observation ?? null);
    } catch (error) {
      throw bridgeFailed(
        this.channel.name,
        `gave an observation of another kind than its space: ${(error as Error).message}`,
        error,
      );
    }
  }
}

/** @throws INVALID_ARGUMENT for what JSON cannot say. */
export function jsonOf(name: string, value: unknown): JsonObject {
  try {
    return JSON.parse(JSON.stringify(value)) as JsonObject;
  } catch (error) {
    throw new LlamaGymError("INVALID_ARGUMENT", `The ${name} cannot be written as JSON: ${(error as Error).message}`);
  }
}
