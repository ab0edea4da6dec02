import { parseArgs } from "node:util";
import {
  AutoModelForCausalLMWithValueHead,
  make,
  TextAgent,
  Trainer,
  type LanguageModel,
  ppo,
} from "../../src/index.js";
import type { Request, Result } from "../framework.js";
import type { PretrainedWork } from "../pretrained.js";
import { serve } from "../serve.js";

const { values } = parseArgs({
  options: { model: { type: "string" }, threads: { type: "string", default: "2" } },
});

/** This project's side of `npm run bench -- pretrained`. */
class PretrainedBench {
  /** Seed of the next run, so that it does not repeat the prompts of an earlier one. */
  private seed = 0;
  private opened: { key: string; model: LanguageModel; agent: TextAgent } | undefined;

  async handle({ repeat, ...work }: Request & PretrainedWork): Promise<Result> {
    const agent = await this.openAgent(work);
    const rows: { rollout: number; update: number }[] = [];
    const trainer = new Trainer({
      agent,
      env: () => make(work.env),
      numEnvs: work.envs,
      turns: work.turns * repeat,
      seed: this.seed++,
    });
    await trainer.train({
      tracker: {
        log: (_step, record) => {
          rows.push({ rollout: record["time/rollout"], update: record["time/update"] });
        },
      },
    });
    const rate = (name: "rollout" | "update") =>
      (work.turns * rows.length) / rows.reduce((sum, row) => sum + row[name], 0);
    return {
      seconds: rows.map(({ rollout, update }) => rollout + update),
      count: work.turns,
      values: { rollout: rate("rollout"), update: rate("update") },
    };
  }

  private async openAgent({ env, layers, quantize, turns, mini_batch, epochs }: PretrainedWork): Promise<TextAgent> {
    const key = `${env} ${layers.join()} ${quantize ?? 32}`;
    if (this.opened?.key === key) return this.opened.agent;
    await this.opened?.model.close();
    const model = await AutoModelForCausalLMWithValueHead.fromPretrained(values.model!, {
      device: "cpu",
      threads: Number(values.threads),
      ...(quantize === undefined ? {} : { quantize, backwardPrecision: "int8" }),
      peftConfig: { r: 16, loraAlpha: 32, layersToTransform: layers },
    });
    const agent = new TextAgent(model, make(env).text!, {
      actionMode: "choices",
      historyTurns: 0,
      algorithm: ppo({
        batchSize: turns,
        miniBatchSize: mini_batch,
        numPpoEpochs: epochs,
        advantageLevel: "turn",
        learningRate: 1e-4,
        initKlCoef: 0,
        vfCoef: 0.5,
        entropyCoef: 0.01,
        maxGradNorm: 0.5,
      }),
    });
    this.opened = { key, model, agent };
    return agent;
  }
}

const pretrainedBench = new PretrainedBench();
await serve((request) => pretrainedBench.handle(request as Request & PretrainedWork));
process.exit(0);
