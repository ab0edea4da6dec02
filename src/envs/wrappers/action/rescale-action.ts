import type { Env } from "../../env.js";
import { Box } from "../../spaces/box.js";
import type { TextInterface } from "../../text-interface.js";
import { ActionWrapper } from "../../wrapper.js";
import { requireBox } from "../require-box.js";
import { rescaleBox, type Rescaling } from "../rescale-box.js";

/** Clips actions to the environment's bounds. */
export class ClipAction<Observation> extends ActionWrapper<Observation, Float32Array> {
  override readonly text: TextInterface<Observation, Float32Array> | undefined;
  private readonly box: Box<"float32">;

  constructor(env: Env<Observation, Float32Array>) {
    const box = requireBox(env.actionSpace, "ClipAction", "action");
    super(env, new Box(-Infinity, Infinity, { shape: box.shape, dtype: box.dtype }));
    this.box = box;
    this.text = env.text;
  }

  override action(action: Float32Array): Float32Array {
    const { low, high } = this.box;
    return this.box.array(Array.from(action, (value, i) => Math.min(Math.max(value, low[i]), high[i])));
  }
}

export interface RescaleActionOptions {
  readonly minAction: number;
  readonly maxAction: number;
}

/** Rescales actions from new bounds to the environment's bounds. */
export class RescaleAction<Observation> extends ActionWrapper<Observation, Float32Array> {
  private readonly rescaling: Rescaling;

  constructor(env: Env<Observation, Float32Array>, { minAction, maxAction }: RescaleActionOptions) {
    const rescaling = rescaleBox(requireBox(env.actionSpace, "RescaleAction", "action"), minAction, maxAction);
    super(env, rescaling.box);
    this.rescaling = rescaling;
  }

  override action(action: Float32Array): Float32Array {
    return this.rescaling.backward(action);
  }
}
