import { LlamaGymError } from "../../../core/errors.js";
import type { CausalLM } from "../../../models/index.js";

/**
 * A reference policy with separate values of the trained parameters: the policy's when it was
 * created, which move towards the policy's at each `sync`.
 */
export class ReferenceCopy {
  private constructor(
    private readonly policy: CausalLM,
    /** The policy with the reference's values. */
    readonly model: CausalLM,
  ) {}

  static async create(policy: CausalLM): Promise<ReferenceCopy> {
    const reference = new ReferenceCopy(policy, policy.withOwnValues());
    await reference.setState(await readValues(policy));
    return reference;
  }

  /** Moves the values a share `alpha` of the way to the policy's (TR-DPO's soft update). */
  async sync(alpha: number): Promise<void> {
    const values = await readValues(this.model);
    const target = await readValues(this.policy);
    await this.setState(values.map((value, i) => Math.fround(value * (1 - alpha)) + alpha * target[i]));
  }

  async getState(): Promise<Float32Array> {
    return readValues(this.model);
  }

  /** @throws RUN_INCOMPATIBLE for another number of values. */
  async setState(values: Float32Array): Promise<void> {
    const { parameters, runtime } = this.model;
    if (values.length !== parameters.count)
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The saved reference policy has ${values.length} values, the trained parameters are ${parameters.count}. Resume the run with the model and adapter that it started with.`,
      );
    await runtime.write(parameters.values, values);
    this.model.markParametersChanged();
  }

  release(): void {
    this.model.parameters.free();
  }
}

async function readValues({ runtime, parameters }: CausalLM): Promise<Float32Array> {
  const { data } = await runtime.read(parameters.values);
  return data as Float32Array;
}
