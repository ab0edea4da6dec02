import { invalidArgument } from "../../../core/errors.js";
import type { Env } from "../../env.js";
import type { Box } from "../../spaces/box.js";
import { Discrete } from "../../spaces/discrete.js";
import type { TextInterface } from "../../text-interface.js";
import { ActionWrapper } from "../../wrapper.js";
import { requireBox } from "../require-box.js";

/**
 * Discretizes a Box of actions into the centers of equal bins, the last element's bins first. With a
 * text interface, each bin's action becomes a choice.
 */
export class DiscretizeAction<Observation> extends ActionWrapper<Observation, number, Float32Array> {
  override readonly text: TextInterface<Observation, number> | undefined;
  private readonly inner: Box<"float32">;
  /** Bin centers of each element. */
  private readonly binCenters: readonly (readonly number[])[];

  /** @param bins number of bins, for all elements or per element */
  constructor(env: Env<Observation, Float32Array>, { bins }: { readonly bins: number | readonly number[] }) {
    const inner = requireBox(env.actionSpace, "DiscretizeAction", "action");
    if (!inner.isBounded()) {
      throw invalidArgument(`DiscretizeAction needs finite bounds, got ${inner.toString()}.`);
    }
    const counts = typeof bins === "number" ? Array.from(inner.low, () => bins) : bins;
    if (counts.length !== inner.flatSize || !counts.every((count) => Number.isInteger(count) && count > 0)) {
      throw invalidArgument(`bins must be a number above 0, or ${inner.flatSize} of them, got ${counts.join(", ")}.`);
    }
    super(env, new Discrete(counts.reduce((total, count) => total * count, 1)));
    this.inner = inner;
    this.binCenters = counts.map((count, i) => computeBinCenters(inner.low[i], inner.high[i], count));
    this.text = env.text === undefined ? undefined : this.createTextInterface(env.text);
  }

  override action(action: number): Float32Array {
    let rest = action;
    const values = this.binCenters.map(() => 0);
    for (let i = this.binCenters.length - 1; i >= 0; i--) {
      const binCenters = this.binCenters[i];
      values[i] = binCenters[rest % binCenters.length];
      rest = Math.floor(rest / binCenters.length);
    }
    return this.inner.array(values);
  }

  /** Finds the action with the nearest bin centers. */
  private findNearestAction(values: Float32Array): number {
    return this.binCenters.reduce((action, binCenters, i) => {
      const distances = binCenters.map((center) => Math.abs(center - values[i]));
      return action * binCenters.length + distances.indexOf(Math.min(...distances));
    }, 0);
  }

  private createTextInterface(inner: TextInterface<Observation, Float32Array>): TextInterface<Observation, number> {
    const choices = Array.from({ length: (this.actionSpace as Discrete).n }, (_, i) =>
      inner.formatAction(this.action(i)),
    );
    return {
      systemPrompt: inner.systemPrompt,
      formatObservation: (observation, info) => inner.formatObservation(observation, info),
      parseAction: (completion) => {
        const parsed = inner.parseAction(completion);
        return parsed === undefined ? undefined : this.findNearestAction(parsed);
      },
      formatAction: (action) => choices[action],
      choices,
    };
  }
}

/** In float32, as the bounds are. */
function computeBinCenters(low: number, high: number, count: number): number[] {
  const width = Math.fround(Math.fround(high - low) / count);
  const computeEdge = (i: number) => (i === count ? high : Math.fround(Math.fround(i * width) + low));
  return Array.from({ length: count }, (_, i) => Math.fround(0.5 * Math.fround(computeEdge(i) + computeEdge(i + 1))));
}
