import type * as Llamagym from "../../src/index.js";

/** Metrics of updates, and what the adapter does after them. */
export interface PageResult {
  readonly losses: readonly number[];
  readonly rewards: readonly number[];
  readonly completion: string;
  readonly logProbs: readonly number[];
}

export const PROMPT = "Your total is 13. The dealer shows 2.";

/** Trains Blackjack for two updates of 64 turns; runs in Node and in a page. */
export async function trainBlackjack(
  { AutoModelForCausalLMWithValueHead, make, ppo, TextAgent, Trainer }: typeof Llamagym,
  { threads, checkpointDir }: { readonly threads: number; readonly checkpointDir?: string },
): Promise<PageResult> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { threads });
  const agent = new TextAgent(model, make("Blackjack-v1").text!, {
    seed: 1,
    actionMode: "choices",
    algorithm: ppo({
      batchSize: 64,
      miniBatchSize: 64,
      numPpoEpochs: 2,
      learningRate: 1e-3,
      entropyCoef: 0.1,
      initKlCoef: 0,
    }),
  });
  const records: Llamagym.MetricRecord[] = [];
  const trainer = new Trainer({ agent, env: "Blackjack-v1", seed: 1, turns: 128, checkpointDir });
  await trainer.train({ tracker: { log: (_, record) => void records.push(record) } });
  const { text, logProbs } = await model.generate(PROMPT, { maxNewTokens: 8, temperature: 0, ignoreEos: true });
  await model.close();
  const read = (name: string) => records.map((record) => record[name]);
  return { losses: read("loss"), rewards: read("objective/scores"), completion: text, logProbs: [...logProbs] };
}
