import { getOrCreatePromise } from "../../core/promise-cache.js";
import { compile, dim, input, reduceSum } from "../../engine/graph/index.js";
import type { Session } from "../../engine/runtime/index.js";
import { Sampler } from "../../generation/index.js";
import type { CausalLM } from "../../models/index.js";
import { type TokenBatch, ScoringGraph, TrainingGraph } from "../../models/graphs/index.js";
import { buildLoss, TINKER_LOSSES } from "./losses.js";
import type { PassPart } from "./training-pass.js";

/** Result of a part of a training pass. */
export interface PartResult {
  readonly loss: number;
  /** Log-probability of each selected token. */
  readonly logProbs: Float32Array;
}

/**
 * What all adapters of one form share, which is a rank and a set of modules: compiled graphs and
 * inference sessions. The values of an adapter are inputs.
 */
export class ModelForm {
  private readonly training = new Map<string, Promise<TrainingGraph>>();
  private readonly scoring = new Map<boolean, Promise<ScoringGraph>>();
  private readonly losses = new Map<string, Promise<Session>>();
  private readonly samplers = new Map<string, Promise<Sampler>>();
  /** Training passes share a buffer, so that one runs at a time; each waits for the one before. */
  private lastPass: Promise<unknown> = Promise.resolve();

  constructor(
    /** The model that graphs are built from. */
    readonly prototype: CausalLM,
  ) {}

  /** Creates a sampler for the values of a model of this form. */
  async createSampler(model: CausalLM): Promise<Sampler> {
    const root = await getOrCreatePromise(this.samplers, "root", () => Sampler.create(this.prototype));
    return root.withModel(model);
  }

  /** Computes the loss of a part and adds its gradient to the model's, or replaces it. */
  async train(model: CausalLM, lossName: string, part: PassPart, accumulate: boolean): Promise<PartResult> {
    const withPrefix = hasPrefix(part.batch);
    const graph = await getOrCreatePromise(this.training, `${lossName} ${withPrefix}`, () =>
      TrainingGraph.create(
        this.prototype,
        (policy) => {
          const each = buildLoss(TINKER_LOSSES[lossName], policy);
          return { loss: reduceSum(each), statistics: { logProbs: policy.logProbs } };
        },
        { withPrefix },
      ),
    );
    const { loss, logProbs } = await this.inTurn(() => graph.run(part.batch, part.inputs, { accumulate, model }));
    return { loss: loss.data[0], logProbs: logProbs.data };
  }

  /** Computes the loss of a part without a gradient. */
  async evaluate(model: CausalLM, lossName: string, part: PassPart): Promise<PartResult> {
    const logProbs = await this.score(model, part.batch);
    const session = await getOrCreatePromise(this.losses, lossName, async () => {
      const selected = dim("selected");
      const nodes = { logProbs: input("logProbs", "float32", [selected]), selected };
      return this.prototype.runtime.createSession(
        compile({ loss: reduceSum(buildLoss(TINKER_LOSSES[lossName], nodes)) }),
      );
    });
    const feeds = { ...part.inputs, logProbs: { dtype: "float32", shape: [logProbs.length], data: logProbs } as const };
    const { loss } = (await session.run(feeds)) as Record<string, { data: Float32Array }>;
    return { loss: loss.data[0], logProbs };
  }

  /** Computes the log-probability of each selected token. */
  async score(model: CausalLM, batch: TokenBatch): Promise<Float32Array> {
    const withPrefix = hasPrefix(batch);
    const graph = await getOrCreatePromise(this.scoring, withPrefix, () =>
      ScoringGraph.create(this.prototype, { withPrefix }),
    );
    return (await graph.run(batch, { model })).logProbs;
  }

  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.lastPass.then(work);
    this.lastPass = result.catch(() => undefined);
    return result;
  }
}

function hasPrefix({ groups }: TokenBatch): boolean {
  return groups.some(({ prefix }) => prefix.length > 0);
}
