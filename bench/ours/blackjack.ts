import { parseArgs } from "node:util";
import {
  Agent,
  AutoModelForCausalLMWithValueHead,
  make,
  Trainer,
  type AgentOptions,
  type LanguageModel,
  ppo,
} from "../../src/index.js";
import type { BlackjackWork } from "../blackjack.js";
import type { Request, Result } from "../framework.js";
import { serve } from "../serve.js";

const { values } = parseArgs({
  options: { model: { type: "string" }, threads: { type: "string", default: "2" } },
});

/** LlamaGym's example, as a user would write it here. */
class BlackjackAgent extends Agent<readonly [number, number, number], number> {
  constructor(
    model: LanguageModel,
    private readonly work: BlackjackWork,
    options: AgentOptions<readonly [number, number, number], number>,
  ) {
    super(model, undefined, options);
  }

  override getSystemPrompt() {
    return this.work.system;
  }

  override formatObservation([total, dealer, ace]: readonly [number, number, number]) {
    const words = { total: `${total}`, dealer: `${dealer}`, ace: ace === 1 ? "a" : "no" };
    return this.work.observation.replace(/\{(total|dealer|ace)\}/g, (_, name: keyof typeof words) => words[name]);
  }

  override extractAction(response: string) {
    return response.includes("stay") ? 0 : 1;
  }
}

/**
 * This project's side of `npm run bench -- blackjack`: all turns of a batch are played side by
 * side.
 */
class BlackjackBench {
  private agent: BlackjackAgent | undefined;

  async handle({ repeat, ...work }: Request & BlackjackWork): Promise<Result> {
    this.agent ??= await openAgent(work);
    const seconds: number[] = [];
    const rollouts: number[] = [];
    const updates: number[] = [];
    const trainer = new Trainer({
      agent: this.agent,
      env: () => make("Blackjack-v1"),
      numEnvs: work.turns,
      turns: work.turns * repeat,
    });
    await trainer.train({
      tracker: {
        log: (_step, record) => {
          seconds.push(record["time/rollout"] + record["time/update"]);
          rollouts.push(work.turns / record["time/rollout"]);
          updates.push(work.turns / record["time/update"]);
        },
      },
    });
    return { seconds, count: work.turns, values: { rollout: mean(rollouts), update: mean(updates) } };
  }
}

async function openAgent(work: BlackjackWork): Promise<BlackjackAgent> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(values.model!, {
    device: "cpu",
    threads: Number(values.threads),
    peftConfig: { r: 16, loraAlpha: 32, loraDropout: 0.05, targetModules: work.target_modules },
    valueHead: { dropout: 0.1 },
  });
  return new BlackjackAgent(model, work, {
    generation: {
      maxNewTokens: work.new_tokens,
      temperature: work.temperature,
      topP: work.top_p,
      // Completions never end early, so every turn is the same work.
      ignoreEos: true,
    },
    algorithm: ppo({ batchSize: work.turns, miniBatchSize: work.turns, numPpoEpochs: work.epochs }),
  });
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
}

const blackjackBench = new BlackjackBench();
await serve((request) => blackjackBench.handle(request as Request & BlackjackWork));
process.exit(0);
