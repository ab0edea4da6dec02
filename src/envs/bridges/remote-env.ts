import { type JsonObject, type JsonValue, asJsonObject } from "../../core/json.js";
import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { Env, type EnvMetadata, type RenderFrame, type RenderMode, type ResetOptions } from "../env.js";
import type { ResetResult, StepResult } from "../env.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";
import { bridgeError, type Channel } from "./channel.js";
import { decodeObservation } from "./decode-observation.js";

/** Description of a remote environment. */
export interface RemoteEnvDescription {
  readonly observationSpace: Space;
  readonly actionSpace: Space;
  readonly metadata: EnvMetadata;
  readonly text: TextInterface<unknown, unknown> | undefined;
}

/**
 * An environment in another process or on another machine. Calls are asynchronous; remote
 * errors become ENV_FAILED. Its random stream and state are remote, so it has neither here.
 */
export class RemoteEnv extends Env {
  override readonly observationSpace: Space;
  override readonly actionSpace: Space;
  override readonly metadata: EnvMetadata;
  override readonly text: TextInterface<unknown, unknown> | undefined;
  private phase: "new" | "running" | "over" = "new";

  constructor(
    private readonly channel: Channel,
    { observationSpace, actionSpace, metadata, text }: RemoteEnvDescription,
  ) {
    super();
    this.observationSpace = observationSpace;
    this.actionSpace = actionSpace;
    this.metadata = metadata;
    this.text = text;
  }

  override async reset({ seed, options }: ResetOptions = {}): Promise<ResetResult<unknown>> {
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

  override async step(action: unknown): Promise<StepResult<unknown>> {
    this.checkAction(action);
    if (this.phase === "new") throw this.notResetError();
    if (this.phase === "over")
      throw new LlamaGymError("ENV_NOT_RESET", `${this.channel.name}: the episode has ended. Call reset().`);
    const result = this.readObject(
      "step",
      await this.channel.call("step", { action: this.actionSpace.encode(action) }),
    );
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

  override async render(mode: RenderMode): Promise<RenderFrame> {
    if (!this.metadata.renderModes.includes(mode)) return super.render(mode);
    if (this.phase === "new") throw this.notResetError();
    return readFrame(this.channel.name, mode, await this.channel.call("render", { mode }));
  }

  override close(): Promise<void> {
    return this.channel.close();
  }

  override toString(): string {
    return `<${this.constructor.name}<${this.channel.name}>>`;
  }

  private readObject(method: string, json: JsonValue): JsonObject {
    const result = asJsonObject(json);
    if (result !== undefined) return result;
    throw bridgeError(this.channel.name, `replied to ${method} with something other than an object.`);
  }

  private observation({ observation }: JsonObject): unknown {
    try {
      return decodeObservation(this.observationSpace, observation ?? null);
    } catch (error) {
      const problem = `returned an observation that does not match its space: ${(error as Error).message}`;
      throw bridgeError(this.channel.name, problem, error);
    }
  }
}

/** Reads the answer to `render`. @throws ENV_FAILED for neither text nor an image */
export function readFrame(name: string, mode: RenderMode, json: JsonValue): RenderFrame {
  const { text, width, height, data } = asJsonObject(json) ?? {};
  if (typeof text === "string") return text;
  if (isCount(width) && isCount(height) && typeof data === "string") {
    const bytes = new Uint8Array(Buffer.from(data, "base64"));
    if (bytes.length === 3 * width * height) return { width, height, data: bytes };
  }
  throw bridgeError(name, `replied to render("${mode}") with neither text nor an image.`);
}

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;

/** @throws INVALID_ARGUMENT for values without a JSON form. */
export function toJsonObject(name: string, value: unknown): JsonObject {
  try {
    return JSON.parse(JSON.stringify(value)) as JsonObject;
  } catch (error) {
    throw invalidArgument(`The ${name} cannot be written as JSON: ${(error as Error).message}`);
  }
}
