import { Agent, AutoModelForCausalLMWithValueHead, make, Trainer, type LanguageModel, ppo } from "../../src/index.js";

type Observation = readonly [sum: number, dealer: number, usableAce: number];

const SYSTEM = "You are an expert blackjack player. Answer hit to take another card or stay to stop.";
const HANDS = 20_000;

function format([sum, dealer, ace]: Observation): string {
  return `Your current total is ${sum}. The dealer shows ${dealer}. You have ${ace ? "a" : "no"} usable ace. hit or stay?`;
}

class BlackjackAgent extends Agent<Observation, number> {
  override getSystemPrompt() {
    return SYSTEM;
  }

  override formatObservation(observation: Observation) {
    return format(observation);
  }

  override getChoices() {
    return ["stay", "hit"];
  }

  override extractAction(completion: string) {
    return completion === "stay" ? 0 : 1;
  }
}

const STATES = Array.from({ length: 18 * 10 * 2 }, (_, i): Observation => [
  4 + ((i >> 1) % 18),
  1 + Math.floor(i / 36),
  i % 2,
]);

/** The prompt of each state, in the embedded model's chat format. */
export const PROMPTS: readonly string[] = STATES.map(
  (state) => `<|system|>${SYSTEM}<|end|><|user|>${format(state)}<|end|><|assistant|>`,
);

/** Trains the embedded model for a minute at most, and returns it with its adapter. */
export async function trainBlackjack(): Promise<LanguageModel> {
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { device: "cpu" });
  const agent = new BlackjackAgent(model, model.tokenizer, {
    seed: 1,
    historyTurns: 0,
    algorithm: ppo({
      batchSize: 2048,
      miniBatchSize: 512,
      numPpoEpochs: 4,
      learningRate: 3e-3,
      advantageLevel: "turn",
      initKlCoef: 0,
      vfCoef: 0.5,
      entropyCoef: 0.05,
      maxGradNorm: 0.5,
    }),
  });
  await new Trainer({ agent, env: "Blackjack-v1", numEnvs: 64, episodes: 6000, seed: 1 }).train();
  return model;
}

/** Plays hands by a reply for each of PROMPTS. */
export async function playBlackjack(
  replies: readonly string[],
  seed: number,
): Promise<{ readonly mean: number; readonly standardError: number }> {
  const replyByPrompt = new Map(STATES.map((state, i) => [format(state), replies[i]]));
  const env = make<Observation, number>("Blackjack-v1");
  let [sum, squares] = [0, 0];
  for (let hand = 0; hand < HANDS; hand++) {
    let { observation } = await env.reset(hand === 0 ? { seed } : {});
    for (let done = false; !done;) {
      const reply = replyByPrompt.get(format(observation));
      const step = await env.step(reply?.trim() === "hit" ? 1 : 0);
      sum += step.reward;
      squares += step.reward ** 2;
      observation = step.observation;
      done = step.terminated || step.truncated;
    }
  }
  const mean = sum / HANDS;
  return { mean, standardError: Math.sqrt((squares / HANDS - mean ** 2) / HANDS) };
}
