import { LlamaGymError } from "../../core/errors.js";
import { Optimizer, type OptimizerState, type StepHyperparameters } from "../../engine/optim/index.js";
import type { CausalLM } from "../../models/index.js";
import type { ForwardBackwardOutput, ForwardBackwardRequest, WireTensor } from "../../tinker/wire/index.js";
import type { ModelForm } from "./model-form.js";
import { checkPass, splitPass } from "./training-pass.js";

/** The values of an adapter that a client trains, with its gradient and its optimizer. */
export class TrainedModel {
  private readonly optimizer: Optimizer;
  private hasGradient = false;

  constructor(
    readonly model: CausalLM,
    private readonly form: ModelForm,
  ) {
    this.optimizer = new Optimizer(model.parameters, { weightDecay: 0, maxGradNorm: Infinity });
  }

  /**
   * Computes a loss, and adds its gradient to that of earlier passes unless it is for a forward
   * pass. @throws INVALID_ARGUMENT
   */
  async run(request: ForwardBackwardRequest): Promise<ForwardBackwardOutput> {
    const { config } = this.model;
    const pass = checkPass(request, config);
    const logProbs = pass.data.map(({ targets }) => new Float32Array(targets.length));
    let loss = 0;
    for (const part of splitPass(pass, config)) {
      const result = request.forwardOnly
        ? await this.form.evaluate(this.model, pass.lossName, part)
        : await this.form.train(this.model, pass.lossName, part, this.hasGradient);
      if (!request.forwardOnly) this.hasGradient = true;
      loss += result.loss;
      part.cells.forEach((cells, i) => {
        for (const [datum, index] of cells) logProbs[datum][index] = result.logProbs[i];
      });
    }
    const tokens = pass.data.reduce((sum, datum) => sum + datum.tokens.length, 0);
    return {
      lossFnOutputType: "ArrayRecord",
      lossFnOutputs: pass.data.map(({ shape }, i): Record<string, WireTensor> => ({
        logprobs: { dtype: "float32", shape, data: logProbs[i] },
      })),
      metrics: { "loss:sum": loss, "num_tokens:sum": tokens },
    };
  }

  /**
   * Makes an optimizer step with the gradient of the passes since the last one, and clears it.
   * @throws TRAINING_DIVERGED
   */
  async step(adamW: StepHyperparameters): Promise<{ readonly gradNorm: number }> {
    if (!this.hasGradient) await this.model.parameters.zeroGradients(() => true);
    this.hasGradient = false;
    const { gradNorm, skipped } = await this.optimizer.update({ adamW });
    if (skipped)
      throw new LlamaGymError(
        "TRAINING_DIVERGED",
        `The gradient's norm is ${gradNorm}, so that nothing was updated. Lower the learning rate, or continue from an earlier checkpoint.`,
      );
    this.model.markParametersChanged();
    return { gradNorm };
  }

  async getOptimizerState(): Promise<OptimizerState> {
    return this.optimizer.getState();
  }

  /** Restores the optimizer, or resets it. The caller has loaded the values. */
  async restore(optimizer: OptimizerState | undefined): Promise<void> {
    const empty = () => new Float32Array(this.model.parameters.count);
    await this.optimizer.setState(optimizer ?? { kind: "adamw", step: 0, moments: [empty(), empty()] });
    this.hasGradient = false;
    this.model.markParametersChanged();
  }

  release(): void {
    this.optimizer.release();
    this.model.parameters.free();
  }
}
