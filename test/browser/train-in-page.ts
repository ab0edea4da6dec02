import type * as Llamagym from "../../src/index.js";

/** Metrics of updates, and what the adapter does after them. */
export interface PageResult {
  readonly losses: readonly number[];
  readonly rewards: readonly number[];
  readonly completion: string;
  readonly logProbs: readonly number[];
  /** Trained values, as hexadecimal digits of their SHA-256. */
  readonly adapter: string;
}

/** Where and how much to train. */
export interface PageTraining {
  /** Default the embedded model and Blackjack. */
  readonly model?: string;
  readonly env?: string;
  readonly device?: Llamagym.Device;
  readonly threads: number;
  readonly peftConfig?: Llamagym.PeftOptions;
  /** Turns of an update; the run ends after twice as many. Default 64. */
  readonly batchSize?: number;
  /** Default 2. */
  readonly numPpoEpochs?: number;
  readonly checkpointDir?: string;
}

export const PROMPT = "Your total is 13. The dealer shows 2.";

/** Trains a model; runs in Node and in a page. */
export async function trainInPage(
  { AutoModelForCausalLMWithValueHead, make, ppo, TextAgent, Trainer }: typeof Llamagym,
  {
    model: path = "embedded",
    env = "Blackjack-v1",
    device = "cpu",
    threads,
    peftConfig,
    batchSize = 64,
    numPpoEpochs = 2,
    checkpointDir,
  }: PageTraining,
): Promise<PageResult> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(path, { device, threads, peftConfig });
  const agent = new TextAgent(model, make(env).text!, {
    seed: 1,
    actionMode: "choices",
    algorithm: ppo({
      batchSize,
      miniBatchSize: batchSize,
      numPpoEpochs,
      learningRate: 1e-3,
      entropyCoef: 0.1,
      initKlCoef: 0,
    }),
  });
  const records: Llamagym.MetricRecord[] = [];
  const trainer = new Trainer({ agent, env, seed: 1, turns: 2 * batchSize, checkpointDir });
  await trainer.train({ tracker: { log: (_, record) => void records.push(record) } });
  const { text, logProbs } = await model.generate(PROMPT, { maxNewTokens: 8, temperature: 0, ignoreEos: true });
  const { runtime, parameters } = model.causalLM;
  const { data } = await runtime.read(parameters.values);
  const hash = await crypto.subtle.digest("SHA-256", (data as Float32Array<ArrayBuffer>).slice());
  const adapter = [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  await model.close();
  const read = (name: string) => records.map((record) => record[name]);
  return {
    losses: read("loss"),
    rewards: read("objective/scores"),
    completion: text,
    logProbs: [...logProbs],
    adapter,
  };
}
